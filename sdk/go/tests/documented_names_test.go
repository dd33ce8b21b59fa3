package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readNames runs the reader of the public names on a copy of the SDK with one more file.
func readNames(t *testing.T, added string) (string, error) {
	t.Helper()
	reader, err := filepath.Abs("../../../xtask/src/sdk_docs/names.go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("..")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "added.go"), []byte("package toolgate\n\n"+added), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "run", reader)
	command.Dir = folder
	output, err := command.CombinedOutput()
	return string(output), err
}

func TestKnownKindsOfNamesAreRead(t *testing.T) {
	output, err := readNames(t, "// Box is a box.\ntype Box struct{ Size int }\n")
	if err != nil || !strings.Contains(output, `"Box.Size"`) {
		t.Fatalf("%v: %s", err, output)
	}
}

func TestOtherKindsOfNamesFail(t *testing.T) {
	output, err := readNames(t, "// Box is a box.\ntype Box struct{ Failure }\n")
	if err == nil || !strings.Contains(output, "does not know embedded fields: Box has Failure") {
		t.Fatalf("%v: %s", err, output)
	}
}
