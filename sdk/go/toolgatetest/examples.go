//go:build !wasip1

package toolgatetest

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// example is one entry of examples.json: a call and its expected outcome. Without a result or a failure, it accepts any result.
type example struct {
	Name      string          `json:"name"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Failure   string          `json:"failure"`
}

// Examples makes the calls of an examples.json, each as a subtest. `toolgate dev` and `toolgate conform` make the same calls with
// the component.
func Examples(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var examples []example
	if err := json.Unmarshal(text, &examples); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(examples) == 0 {
		t.Fatalf("%s has no examples", path)
	}
	for number, example := range examples {
		name := example.Name
		if name == "" {
			name = fmt.Sprintf("%d_%s", number+1, example.Tool)
		}
		t.Run(name, func(t *testing.T) {
			run := Run(t, example.Tool, example.Arguments)
			switch {
			case example.Failure != "":
				if !run.Failed || run.Kind.String() != example.Failure {
					t.Errorf("not the failure %s but %s %s: %s", example.Failure, run.Kind, run.Message, run.Text)
				}
			case example.Result != nil:
				run.WantResult(t, example.Result)
			case run.Failed:
				t.Errorf("%s: %s", run.Kind, run.Message)
			}
		})
	}
}
