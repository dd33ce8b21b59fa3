// Differences between documents: lines of text, JSON, and INI files.
package main

import (
	"encoding/json"
	"strings"

	"toolgate"
)

type texts struct {
	Before  string `json:"before" description:"The older text."`
	After   string `json:"after" description:"The newer text."`
	Context int    `json:"context" description:"How many unchanged lines are shown around a change." minimum:"0" maximum:"100" default:"3"`
	Name    string `json:"name,omitempty" description:"What the head of the diff calls the document." maxLength:"200" pattern:"^[^\\r\\n]*$"`
}

type textDiff struct {
	Identical bool `json:"identical"`
	Added     int  `json:"added" description:"How many lines came in."`
	Removed   int  `json:"removed" description:"How many lines went."`
	// Minimal is false if the texts are so different that a middle part counts as replaced completely.
	Minimal bool   `json:"minimal" description:"Whether there is no shorter diff."`
	Unified string `json:"unified" description:"A unified diff, as patch(1) reads it; empty for identical texts."`
}

type values struct {
	Before json.RawMessage `json:"before" description:"The older document, any JSON."`
	After  json.RawMessage `json:"after" description:"The newer document, any JSON."`
}

type inis struct {
	Before string `json:"before" description:"The older INI file."`
	After  string `json:"after" description:"The newer INI file."`
}

type jsonDiff struct {
	Identical bool        `json:"identical"`
	Patch     []operation `json:"patch" description:"A JSON Patch (RFC 6902) that makes the newer document of the older."`
}

type patching struct {
	Document json.RawMessage `json:"document" description:"The document, any JSON."`
	Patch    []operation     `json:"patch" description:"A JSON Patch (RFC 6902). It is applied whole or not at all." maxItems:"10000"`
}

func diffText(call *toolgate.Call, args texts) (textDiff, error) {
	call.Progress("comparing", 0)
	if args.Before == args.After {
		return textDiff{Identical: true, Minimal: true}, nil
	}
	before, after := lines(args.Before), lines(args.After)
	changed, minimal, err := changes(before, after, func(done float64) bool {
		call.Progress("comparing", done)
		return call.StopRequested()
	})
	if err != nil {
		return textDiff{}, err
	}
	name := args.Name
	if name == "" {
		name = "document"
	}
	diff := textDiff{Minimal: minimal, Unified: unified(name, before, after, changed, args.Context)}
	for _, change := range changed {
		diff.Removed += change.a1 - change.a0
		diff.Added += change.b1 - change.b0
	}
	return diff, nil
}

func diffJSON(call *toolgate.Call, args values) (jsonDiff, error) {
	before, err := read(args.Before)
	if err != nil {
		return jsonDiff{}, err
	}
	after, err := read(args.After)
	if err != nil {
		return jsonDiff{}, err
	}
	return difference(call, before, after)
}

func diffINI(call *toolgate.Call, args inis) (jsonDiff, error) {
	before, err := parseINI(args.Before)
	if err != nil {
		return jsonDiff{}, toolgate.InvalidArguments("/before: %w", err)
	}
	after, err := parseINI(args.After)
	if err != nil {
		return jsonDiff{}, toolgate.InvalidArguments("/after: %w", err)
	}
	return difference(call, before, after)
}

func difference(call *toolgate.Call, before, after any) (jsonDiff, error) {
	differ := &differ{stop: call.StopRequested, patch: []operation{}}
	if err := differ.values("", before, after); err != nil {
		return jsonDiff{}, err
	}
	return jsonDiff{Identical: len(differ.patch) == 0, Patch: differ.patch}, nil
}

func patchJSON(_ *toolgate.Call, args patching) (any, error) {
	document, err := read(args.Document)
	if err != nil {
		return nil, err
	}
	return apply(document, args.Patch)
}

// lines splits a text after each line end, so that nothing is lost.
func lines(text string) []string {
	split := strings.SplitAfter(text, "\n")
	if split[len(split)-1] == "" {
		split = split[:len(split)-1]
	}
	return split
}

func init() {
	toolgate.Register(
		toolgate.Server("diff_text", "Compares two texts line by line (Myers) and gives a unified diff.", diffText,
			toolgate.Title("Compare texts"), toolgate.ReadOnly(), toolgate.Idempotent(), toolgate.Streaming()),
		toolgate.Server("diff_json", "Compares two JSON documents by structure and gives a JSON Patch (RFC 6902) from one to the other.",
			diffJSON, toolgate.Title("Compare JSON"), toolgate.ReadOnly(), toolgate.Idempotent()),
		toolgate.Server("diff_ini", "Compares two INI files by sections and keys and gives a JSON Patch of /section/key.", diffINI,
			toolgate.Title("Compare INI files"), toolgate.ReadOnly(), toolgate.Idempotent()),
		toolgate.Server("patch_json", "Applies a JSON Patch (RFC 6902) to a JSON document and gives the new document.", patchJSON,
			toolgate.Title("Patch JSON"), toolgate.ReadOnly(), toolgate.Idempotent()),
	)
}

func main() {} // the host calls the tools; nothing runs by itself
