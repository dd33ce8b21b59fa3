package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"toolgate"
	"toolgate/toolgatetest"
)

func TestTheDeclarationsAreLegal(t *testing.T) { toolgatetest.Check(t) }

func TestTheExamplesHold(t *testing.T) { toolgatetest.Examples(t, "examples.json") }

func TestASmallDiffReportsProgressToo(t *testing.T) {
	run := toolgatetest.Run(t, "diff_text", texts{Before: "a", After: "a"})
	if len(run.Updates) != 1 || run.Updates[0].Fraction != 0 {
		t.Errorf("updates: %v", run.Updates)
	}
}

func TestThreeLinesAreShownAroundAChange(t *testing.T) {
	run := toolgatetest.Run(t, "diff_text", map[string]any{"before": "1\n2\n3\n4\n5\n", "after": "1\n2\n3\n4\n"})
	var diff textDiff
	run.Decode(t, &diff)
	if want := "@@ -2,4 +2,3 @@\n 2\n 3\n 4\n-5\n"; !strings.HasSuffix(diff.Unified, want) {
		t.Error(diff.Unified)
	}
	run = toolgatetest.Run(t, "diff_text", json.RawMessage(`{"before":"a","after":"b","Context":100000}`))
	run.WantFailure(t, toolgate.KindInvalidArguments)
}

func TestUnifiedDiffs(t *testing.T) {
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for _, row := range []struct {
		before, after string
		context       int
		want          string
	}{
		{"", "a\n", 3, "@@ -0,0 +1 @@\n+a\n"},
		{"a\n", "", 3, "@@ -1 +0,0 @@\n-a\n"},
		{"a", "b", 3, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
		{"a\nb", "a\nb\n", 3, "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{"a\r\nb\n", "a\nb\n", 3, "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\n"},
		{ten, strings.Replace(ten, "5\n", "", 1), 1, "@@ -4,3 +4,2 @@\n 4\n-5\n 6\n"},
		{ten, strings.Replace(strings.Replace(ten, "2\n", "x\n", 1), "9\n", "y\n", 1), 1,
			"@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n@@ -8,3 +8,3 @@\n 8\n-9\n+y\n 10\n"},
		{ten, strings.Replace(strings.Replace(ten, "4\n", "", 1), "7\n", "7\n+\n", 1), 0, "@@ -4 +3,0 @@\n-4\n@@ -7,0 +7 @@\n++\n"},
	} {
		run := toolgatetest.Run(t, "diff_text", texts{Before: row.before, After: row.after, Context: row.context, Name: "f"})
		var diff textDiff
		run.Decode(t, &diff)
		if want := "--- a/f\n+++ b/f\n" + row.want; diff.Unified != want {
			t.Errorf("%q to %q:\n%s\nand not\n%s", row.before, row.after, diff.Unified, want)
		}
	}
}

// The diff of any two texts turns one into the other, and no diff is shorter.
func TestDiffsOfRandomTextsAreRightAndShortest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := letters(random), letters(random)
		changed, minimal, err := changes(a, b, func(float64) bool { return false })
		if err != nil || !minimal {
			t.Fatal(minimal, err)
		}
		var made []string
		at, edits := 0, 0
		for _, change := range changed {
			made = append(append(made, a[at:change.a0]...), b[change.b0:change.b1]...)
			at = change.a1
			edits += change.a1 - change.a0 + change.b1 - change.b0
		}
		made = append(made, a[at:]...)
		if strings.Join(made, "") != strings.Join(b, "") {
			t.Fatalf("%v to %v gives %v by %v", a, b, made, changed)
		}
		if best := len(a) + len(b) - 2*common(a, b); edits != best {
			t.Fatalf("%v to %v by %d edits, not %d", a, b, edits, best)
		}
	}
}

func letters(random *rand.Rand) []string {
	list := make([]string, random.IntN(12))
	for i := range list {
		list[i] = string(rune('a' + random.IntN(3)))
	}
	return list
}

// common is the length of the longest common subsequence, the slow way.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for i := range a {
		previous := 0
		for j := range b {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = previous + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			previous = above
		}
	}
	return row[len(b)]
}

func TestVeryDifferentTextsAreReplaced(t *testing.T) {
	a, b := &strings.Builder{}, &strings.Builder{}
	for i := range maxEdits {
		fmt.Fprintf(a, "a%d\n", i)
		fmt.Fprintf(b, "b%d\n", i)
	}
	call := toolgatetest.Call{Tool: "diff_text", Arguments: texts{Before: a.String(), After: b.String()}}
	run := call.Run(t)
	var diff textDiff
	run.Decode(t, &diff)
	if diff.Minimal || diff.Added != maxEdits || diff.Removed != maxEdits || len(run.Updates) < 2 {
		t.Errorf("%v %d %d after %d updates", diff.Minimal, diff.Added, diff.Removed, len(run.Updates))
	}
	call.StopAt = 2
	call.Run(t).WantFailure(t, toolgate.KindFailed)
}

// The patch of any two documents turns one into the other.
func TestPatchesOfRandomDocumentsAreRight(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		a, b := document(random, 3), document(random, 3)
		var diff jsonDiff
		toolgatetest.Run(t, "diff_json", values{text(a), text(b)}).Decode(t, &diff)
		run := toolgatetest.Run(t, "patch_json", patching{text(a), diff.Patch})
		if run.Failed || !equal(mustRead(t, run.Text), b) {
			t.Fatalf("%s to %s by %s gives %s%s", text(a), text(b), text(diff.Patch), run.Text, run.Message)
		}
		if diff.Identical != equal(a, b) {
			t.Fatalf("%s and %s: identical is %v", text(a), text(b), diff.Identical)
		}
	}
}

func mustRead(t *testing.T, text string) any {
	value, err := read(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func document(random *rand.Rand, deep int) any {
	switch kind := random.IntN(7); {
	case kind < 2 && deep > 0:
		object := map[string]any{}
		for range random.IntN(4) {
			object[[]string{"a", "b", "~", "/", ""}[random.IntN(5)]] = document(random, deep-1)
		}
		return object
	case kind < 4 && deep > 0:
		list := []any{}
		for range random.IntN(5) {
			list = append(list, document(random, deep-1))
		}
		return list
	case kind == 4:
		return nil
	case kind == 5:
		return random.IntN(2) == 0
	default:
		return json.Number(fmt.Sprint(random.IntN(3)))
	}
}

// The rows are those of RFC 6902, appendix A, and further mistakes.
func TestPatches(t *testing.T) {
	for _, row := range []struct{ document, patch, want string }{
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"baz":"qux","foo":"bar"}`},
		{`{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
		{`{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
		{`{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`},
		{`{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`},
		{`{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`,
			`{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
		{`{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`},
		{`{"baz":"qux","foo":["a",2,"c"]}`, `[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2.0}]`,
			`{"baz":"qux","foo":["a",2,"c"]}`},
		{`{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, `/patch/0: test /baz: the document has another value there`},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`, `{"child":{"grandchild":{}},"foo":"bar"}`},
		{`{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, `/patch/0: add /baz/bat: there is no "baz"`},
		{`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`},
		{`{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, `/patch/0: test /~01: the document has another value there`},
		{`{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`},
		{`1`, `[{"op":"replace","path":"","value":9007199254740993}]`, `9007199254740993`},
		{`{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}]`, `{"a":{"b":1},"c":{"b":2}}`},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, `/patch/0: move /a/b: a value cannot be moved into itself`},
		{`[1]`, `[{"op":"add","path":"/2","value":1}]`, `/patch/0: add /2: the list has no place 2`},
		{`[1]`, `[{"op":"remove","path":"/01"}]`, `/patch/0: remove /01: "01" is not a place in a list`},
		{`[1]`, `[{"op":"remove","path":""}]`, `/patch/0: remove : the whole document cannot be removed`},
		{`[1]`, `[{"op":"remove","path":"0"}]`, `/patch/0: remove 0: a JSON Pointer begins with a slash`},
		{`{}`, `[{"op":"add","path":"/a~2","value":1}]`, `/patch/0: add /a~2: a tilde in a JSON Pointer is written ~0`},
		{`1`, `[{"op":"add","path":"/a","value":1}]`, `/patch/0: add /a: "a" is neither in an object nor in a list`},
		{`1`, `[{"op":"add","path":""}]`, `/patch/0: add : it has no ` + "`value`"},
		{`1`, `[{"op":"copy","path":""}]`, `/patch/0: copy : it has no ` + "`from`"},
		{`1`, `[{"op":"add","path":"","value":2},{"op":"spin","path":""}]`, `/patch/1: spin : there is no such operation`},
	} {
		run := toolgatetest.Run(t, "patch_json", json.RawMessage(`{"document":`+row.document+`,"patch":`+row.patch+`}`))
		if got := run.Text + run.Message; got != row.want {
			t.Errorf("%s by %s is\n  %s\nand not\n  %s", row.document, row.patch, got, row.want)
		}
	}
}

func TestADocumentThatDoublesIsRefused(t *testing.T) {
	patch := []operation{}
	from := ""
	for range 60 {
		patch = append(patch, operation{Op: "copy", Path: "/-", From: &from})
	}
	toolgatetest.Run(t, "patch_json", patching{json.RawMessage(`[1]`), patch}).WantFailure(t, toolgate.KindInvalidArguments)
}

func TestNullIsAValue(t *testing.T) {
	run := toolgatetest.Run(t, "patch_json", json.RawMessage(`{"document":{"a":1},"patch":[{"op":"replace","path":"/a","value":null}]}`))
	run.WantResult(t, map[string]any{"a": nil})
}

func TestBrokenINIFilesSayWhere(t *testing.T) {
	for broken, want := range map[string]string{
		"[a":           "/before: line 1: a section is written [name]",
		"a\n":          "/before: line 1: neither a section nor `key = value`",
		"a=1\n\n=2":    "/before: line 3: neither a section nor `key = value`",
		"[s]\na=1\na:": "/before: line 3: the section has `a` twice",
	} {
		run := toolgatetest.Run(t, "diff_ini", inis{Before: broken})
		if run.Message != want {
			t.Errorf("%q: %q", broken, run.Message)
		}
	}
}
