package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fuzzTarget matches the beginning of a fuzz target.
var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// TestFuzzInventory: docs/security.md names every fuzz target that there is.
func TestFuzzInventory(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return errorsOrSkip(err, d)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range fuzzTarget.FindAllStringSubmatch(string(text), -1) {
			dir, _ := filepath.Rel(root, filepath.Dir(path))
			found[dir] = append(found[dir], m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| package | fuzz targets |\n|---|---|\n")
	for _, dir := range sortedKeys(found) {
		slices.Sort(found[dir])
		fmt.Fprintf(&table, "| `%s` | %s |\n", dir, strings.Join(found[dir], ", "))
	}
	checkPart(t, filepath.Join(root, "docs", "security.md"), "fuzz", table.String())
}

func errorsOrSkip(err error, d fs.DirEntry) error {
	if err != nil || d == nil {
		return err
	}
	return fs.SkipDir
}

func sortedKeys(m map[string][]string) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// checkPart wants a part of a document to be as generated, or makes it so.
func checkPart(t *testing.T, path, name, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": made by go test ./cmd/ship -run TestFuzzInventory -update-docs -->\n\n", "\n<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ends := strings.Cut(rest, end)
	if !ok || !ends {
		t.Fatalf("%s has no part %s", path, name)
	}
	if got == want {
		return
	}
	if !*updateDocs {
		t.Errorf("%s is not as the code: go test ./cmd/ship -run TestFuzzInventory -update-docs", path)
		return
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Error(err)
	}
}
