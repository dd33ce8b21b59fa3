package main

import (
	"fmt"
	"strings"

	"toolgate"
)

// maxEdits bounds the search, which stores a row for each edit: 8 MB for this many.
const maxEdits = 2000

// change states that a[a0:a1] became b[b0:b1].
type change struct{ a0, a1, b0, b1 int }

// changes finds the shortest edit script (E. Myers, An O(ND) Difference Algorithm, 1986) as ordered changes. Beyond
// maxEdits, the differing part is one change, and the result is not minimal. The function receives the searched share
// of maxEdits, and tells whether to stop.
func changes(a, b []string, stop func(done float64) bool) (found []change, minimal bool, err error) {
	begin := 0
	for begin < len(a) && begin < len(b) && a[begin] == b[begin] {
		begin++
	}
	enda, endb := len(a), len(b)
	for enda > begin && endb > begin && a[enda-1] == b[endb-1] {
		enda--
		endb--
	}
	if begin == enda && begin == endb {
		return nil, true, nil
	}
	whole := []change{{begin, enda, begin, endb}}
	if begin == enda || begin == endb {
		return whole, true, nil
	}
	inner, err := shortest(a[begin:enda], b[begin:endb], stop)
	if err != nil || inner == nil {
		return whole, false, err
	}
	for i := range inner {
		inner[i] = change{inner[i].a0 + begin, inner[i].a1 + begin, inner[i].b0 + begin, inner[i].b1 + begin}
	}
	return inner, true, nil
}

// shortest returns nil beyond maxEdits.
func shortest(a, b []string, stop func(done float64) bool) ([]change, error) {
	most := min(len(a)+len(b), maxEdits)
	// reach[k+most+1] is the position reached on the diagonal k = x - y; rows contains its state before each step.
	reach := make([]int32, 2*most+3)
	rows := make([][]int32, 0, 64)
	for d := 0; d <= most; d++ {
		if d%64 == 63 && stop(float64(d)/float64(most)) {
			return nil, toolgate.Failed("stopped after comparing for a while: the texts are very different")
		}
		row := make([]int32, 2*d+3)
		copy(row, reach[most-d:most+d+3])
		rows = append(rows, row)
		for k := -d; k <= d; k += 2 {
			x := step(reach[most+k], reach[most+k+2], k, d)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[most+k+1] = int32(x)
			if x >= len(a) && x-k >= len(b) {
				return trace(rows, len(a), len(b)), nil
			}
		}
	}
	return nil, nil
}

// step advances by one edit: down from the diagonal above, or right from the one below, depending on which reaches
// further.
func step(below, above int32, k, d int) int {
	if k == -d || (k != d && below < above) {
		return int(above)
	}
	return int(below) + 1
}

// trace follows the stored rows back from the end and joins adjacent edits.
func trace(rows [][]int32, x, y int) []change {
	var reversed []change
	for d := len(rows) - 1; d > 0; d-- {
		// Row d begins at diagonal -d-1.
		at := func(k int) int32 { return rows[d][k+d+1] }
		k := x - y
		before := k - 1
		if k == -d || (k != d && at(k-1) < at(k+1)) {
			before = k + 1
		}
		px := int(at(before))
		py := px - before
		edit := change{px, px, py, py}
		if before == k-1 {
			edit.a1++
		} else {
			edit.b1++
		}
		if last := len(reversed) - 1; last >= 0 && reversed[last].a0 == edit.a1 && reversed[last].b0 == edit.b1 {
			reversed[last].a0, reversed[last].b0 = edit.a0, edit.b0
		} else {
			reversed = append(reversed, edit)
		}
		x, y = px, py
	}
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	return reversed
}

// unified writes the changes in the format of patch(1).
func unified(name string, a, b []string, changed []change, context int) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "--- a/%s\n+++ b/%s\n", name, name)
	for len(changed) > 0 {
		// Changes with touching contexts share a hunk.
		n := 1
		for n < len(changed) && changed[n].a0-changed[n-1].a1 <= 2*context {
			n++
		}
		hunk := changed[:n]
		changed = changed[n:]
		first, last := hunk[0], hunk[n-1]
		lead := min(context, first.a0)
		tail := min(context, len(a)-last.a1)
		fmt.Fprintf(out, "@@ -%s +%s @@\n", span(first.a0-lead, last.a1+tail), span(first.b0-lead, last.b1+tail))
		at := first.a0 - lead
		for _, change := range hunk {
			write(out, ' ', a[at:change.a0])
			write(out, '-', a[change.a0:change.a1])
			write(out, '+', b[change.b0:change.b1])
			at = change.a1
		}
		write(out, ' ', a[at:at+tail])
	}
	return out.String()
}

// span writes the range of a hunk. Lines count from 1, a single line has no length, and an empty range names the line
// before it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, to-from)
	}
}

func write(out *strings.Builder, mark byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
