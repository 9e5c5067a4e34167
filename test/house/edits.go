package main

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/musterd/muster/test/source"
)

// changes are capabilities of one field, one act or one kind of document, with the
// names that belong to the capability alone. A file with such a name is a file to
// open for a change of the capability, or for a second capability of this sort.
var changes = map[string]*regexp.Regexp{
	"field ttlSecondsAfterFinished": regexp.MustCompile(`(?i)ttl_?seconds_?after_?finished`),
	"field signalBefore":            regexp.MustCompile(`(?i)signal_?before|noticesignal|^signaled$`),
	"field subgroup":                regexp.MustCompile(`(?i)subgroup`),
	"field startBy":                 regexp.MustCompile(`(?i)start_?by`),
	"field timeLimit":               regexp.MustCompile(`(?i)time_?limit`),
	"field dependencies":            regexp.MustCompile(`(?i)dependenc|dependents?$`),
	"field parallelism":             regexp.MustCompile(`(?i)parallelism`),
	"act boost":                     regexp.MustCompile(`(?i)boost`),
	"act suspend":                   regexp.MustCompile(`(?i)suspend|suspension`),
	"kind Resource":                 regexp.MustCompile(`^(Resource(List|Spec|Status|WatchEvent|Entry|Documents)|Kind(Resource|Resources)|(Get|Put|List|Delete|Decode|judge|remake)Resources?|(Unimplemented)?ResourcesServer|ResourcesPrefix|ListedResources|cachedResources|routeResources)$`),
	"kind Queue":                    regexp.MustCompile(`^(Queue(List|Spec|Status|WatchEvent)|Kind(Queue|Queues)|(Get|Put|List|Delete|Decode|judge|remake|Written)Queues?|(Unimplemented)?QueuesServer|QueuesPrefix|cachedQueues)$`),
	"kind PriorityClass":            regexp.MustCompile(`(?i)priorityclass(es)?$|priorityclass(list|spec|watchevent|esserver)$`),
}

// filesToOpen counts, for each of changes, the files of the programs that name the
// capability in code: identifiers and strings. Tests, generated files and comments
// do not count.
func (c *code) filesToOpen() []figure {
	counts, changesOfName := map[string]int{}, map[string][]string{}
	for _, f := range c.tree.Files {
		if f.IsTest() || isOfTests(f.Folder) || ast.IsGenerated(f.Syntax) {
			continue
		}
		found := map[string]bool{}
		for name := range namesIn(f) {
			of, known := changesOfName[name]
			if !known {
				of = namedChanges(name)
				changesOfName[name] = of
			}
			for _, change := range of {
				found[change] = true
			}
		}
		for change := range found {
			counts[change]++
		}
	}
	var out []figure
	for _, of := range slices.Sorted(maps.Keys(changes)) {
		out = append(out, figure{kind: "edits", of: of, value: counts[of]})
	}
	return out
}

// namesIn returns the identifiers and the words of strings in a file.
func namesIn(f *source.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names[n.Name] = true
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				for name := range strings.FieldsFuncSeq(n.Value, isNoLetter) {
					names[name] = true
				}
			}
		}
		return true
	})
	return names
}

// namedChanges returns the changes that a name belongs to.
func namedChanges(name string) []string {
	var found []string
	for of, pattern := range changes {
		if pattern.MatchString(name) {
			found = append(found, of)
		}
	}
	return found
}
