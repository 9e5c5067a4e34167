package main

import (
	"path"
	"strings"

	"github.com/musterd/muster/test/house/calls"
	"github.com/musterd/muster/test/source"
)

// code is a measured module.
type code struct {
	tree    *source.Tree
	checked []*source.Checked // compiled files, without tests
	graph   *calls.Graph
	writes  []write
	words   []figure // of wordsOfComments

	// generatedBy names, by folder, the test of the generated files: the test
	// generates the same bytes. Generated files of other folders count like any file.
	generatedBy map[string]string
}

// generatedBy is the table of this module.
var generatedBy = map[string]string{
	"proto/muster/api/v1": "TestGeneratedFilesAreThoseOfTheirProtoFiles",
	"proto/muster/v1":     "TestGeneratedFilesAreThoseOfTheirProtoFiles",
	"proto/scheduler/v1":  "TestGeneratedFilesAreThoseOfTheirProtoFiles",
}

// load reads a module.
func load(root string, generatedBy map[string]string) (*code, error) {
	tree, err := source.Parse(root, nil)
	if err != nil {
		return nil, err
	}
	checked, err := tree.Check()
	if err != nil {
		return nil, err
	}
	c := &code{tree: tree, checked: checked, graph: calls.Build(checked), writes: writesOf(checked), generatedBy: generatedBy}
	return c, c.checkGenerated()
}

// isOfTests reports whether a folder serves tests alone.
func isOfTests(folder string) bool { return folder == "test" || strings.HasPrefix(folder, "test/") }

// room is the name under which the rooms of a folder count together:
// coordinator/lead for coordinator/lead/edit.
func room(folder string) string {
	if parts := strings.SplitN(folder, "/", 3); len(parts) == 3 {
		return path.Join(parts[0], parts[1])
	}
	return folder
}

// unit is the name under which a file's lines and words count: the folder. Tests
// of a folder count apart.
func unit(f *source.File) string {
	if f.IsTest() {
		return f.Folder + " tests"
	}
	return f.Folder
}
