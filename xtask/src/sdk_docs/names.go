// Prints the public names of the Go SDK as JSON, for `cargo xtask sdk-docs`. It runs in the folder of the SDK.
package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"log"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The folders of the packages.
var folders = []string{".", "config", "durable", "httpclient", "keyvalue", "nethttp", "toolgatetest"}

type entry struct {
	Depth     int    `json:"depth"`
	Name      string `json:"name"`
	Signature string `json:"signature"`
	Text      string `json:"text"`
	Fails     bool   `json:"fails"`
}

var (
	files   = token.NewFileSet()
	entries []entry
	links   = regexp.MustCompile(`\[(\*?[A-Za-z][A-Za-z.]*)\]`)
)

func main() {
	for _, folder := range folders {
		read(folder)
	}
	if err := json.NewEncoder(os.Stdout).Encode(entries); err != nil {
		log.Fatal(err)
	}
}

func read(folder string) {
	found, err := build.ImportDir(folder, 0)
	if err != nil {
		log.Fatal(err)
	}
	var parsed []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(folder, name), nil, parser.ParseComments)
		if err != nil {
			log.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	importPath := path.Join("toolgate", folder)
	pkg, err := doc.NewFromFiles(files, parsed, importPath)
	if err != nil {
		log.Fatal(err)
	}
	add(2, "Package "+pkg.Name, `import "`+importPath+`"`, pkg.Doc)
	values(3, pkg.Consts)
	values(3, pkg.Vars)
	for _, function := range pkg.Funcs {
		addFunction(3, function.Name, function)
	}
	for _, found := range pkg.Types {
		addType(found)
	}
}

func addType(found *doc.Type) {
	spec := found.Decl.Specs[0].(*ast.TypeSpec)
	structure, isStruct := spec.Type.(*ast.StructType)
	if isStruct {
		add(3, found.Name, "type "+found.Name+" struct", found.Doc)
		for _, field := range structure.Fields.List {
			if len(field.Names) == 0 {
				// A public name must not be missing on the page because this reader does not know its kind.
				log.Fatalf("cargo xtask sdk-docs does not know embedded fields: %s has %s", found.Name, source(field.Type))
			}
			for _, name := range field.Names {
				add(5, found.Name+"."+name.Name, name.Name+" "+source(field.Type), said(field.Doc, field.Comment))
			}
		}
	} else {
		add(3, found.Name, source(found.Decl), found.Doc)
	}
	values(5, found.Consts)
	values(5, found.Vars)
	for _, function := range found.Funcs {
		addFunction(4, function.Name, function)
	}
	for _, method := range found.Methods {
		addFunction(4, found.Name+"."+method.Name, method)
	}
}

// values adds constants and variables. A group has one text for all, or each has its own.
func values(depth int, groups []*doc.Value) {
	for _, group := range groups {
		for _, one := range group.Decl.Specs {
			spec := one.(*ast.ValueSpec)
			text := said(spec.Doc, spec.Comment)
			if text == "" {
				text = group.Doc
			}
			for _, name := range spec.Names {
				if !name.IsExported() {
					continue
				}
				signature := name.Name
				if literal, ok := valueOf(spec); ok && depth == 5 {
					signature += " = " + literal
				}
				if depth == 3 {
					shown := *spec
					shown.Doc, shown.Comment = nil, nil
					signature = group.Decl.Tok.String() + " " + source(&shown)
				}
				add(depth, name.Name, signature, text)
			}
		}
	}
}

func valueOf(spec *ast.ValueSpec) (string, bool) {
	if len(spec.Values) != 1 {
		return "", false
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	return literal.Value, true
}

func addFunction(depth int, name string, function *doc.Func) {
	shown := *function.Decl
	shown.Doc, shown.Body = nil, nil
	add(depth, name, source(&shown), function.Doc)
	if results := function.Decl.Type.Results; results != nil {
		for _, result := range results.List {
			if source(result.Type) == "error" {
				entries[len(entries)-1].Fails = true
			}
		}
	}
}

func said(comments ...*ast.CommentGroup) string {
	for _, comment := range comments {
		if text := comment.Text(); text != "" {
			return text
		}
	}
	return ""
}

func add(depth int, name, signature, text string) {
	entries = append(entries, entry{Depth: depth, Name: name, Signature: signature, Text: markdown(text)})
}

// markdown turns a doc comment into Markdown: indented lines are code, and links to names are names.
func markdown(comment string) string {
	var lines []string
	inCode := false
	for _, line := range strings.Split(strings.TrimSpace(comment), "\n") {
		code, isCode := strings.CutPrefix(line, "\t")
		switch {
		case isCode && !inCode:
			lines = append(lines, "```go")
		case !isCode && inCode && line != "":
			last := len(lines) - 1
			lines = append(lines[:last], "```", "")
			isCode = false
		}
		inCode = isCode || inCode && line == ""
		if !isCode {
			code = links.ReplaceAllString(line, "`$1`")
		}
		lines = append(lines, code)
	}
	if inCode {
		lines = append(lines, "```")
	}
	return strings.Join(lines, "\n")
}

func source(node any) string {
	var text bytes.Buffer
	if err := printer.Fprint(&text, files, node); err != nil {
		log.Fatal(err)
	}
	return text.String()
}
