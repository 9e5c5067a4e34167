package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unbuilt finds the phrases by which a document says that something is absent and will
// come. A document uses "not built" and nothing else, so that none is overlooked.
var unbuilt = regexp.MustCompile(`(?i)\bnot built\b|\bplanned[,:] not\b|\bplanned: \b|\bnot (yet )?implemented\b|\bbuilt later\b|\blater versions? (will|fill)\b|\bnot supported yet\b|\bno \w+ (\w+ )?(feeds|does) it yet\b|\bwill be (built|added)\b|\bis to come\b|\bTODO\b`)

// openLink finds a reference to an entry of the list.
var openLink = regexp.MustCompile(`\]\((?:\.\./)*(?:docs/)?open\.md(?:#([\w-]+))?\)`)

// openThings reads docs/open.md: the anchors of its entries.
func openThings(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for line := range strings.Lines(read(t, filepath.Join(root, "docs", "open.md"))) {
		if title, is := strings.CutPrefix(line, "## "); is {
			all[anchor(title)] = true
		}
	}
	if len(all) == 0 {
		t.Fatal("docs/open.md has no entries")
	}
	return all
}

// anchor is the name by which a link finds a heading, as GitHub makes it.
func anchor(title string) string {
	title = strings.ToLower(strings.TrimSpace(title))
	title = regexp.MustCompile("[^\\p{L}\\p{N} _-]").ReplaceAllString(title, "")
	return strings.ReplaceAll(title, " ", "-")
}

// TestOpenThingsStandInOneList: each place that says "not built" names an entry of
// docs/open.md, and each entry is named by a document.
func TestOpenThingsStandInOneList(t *testing.T) {
	open := openThings(t)
	named := map[string]bool{}
	for name, text := range documents(t) {
		title, _ := filepath.Rel(root, name)
		if title == "CHANGELOG.md" || title == "docs/open.md" || strings.HasPrefix(title, "docs/adr/") {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			links := openLink.FindAllStringSubmatch(line, -1)
			for _, m := range links {
				if named[m[1]] = true; m[1] != "" && !open[m[1]] {
					t.Errorf("%s:%d: docs/open.md has no entry %q", title, i+1, m[1])
				}
			}
			if phrase := unbuilt.FindString(line); phrase != "" && len(links) == 0 {
				t.Errorf("%s:%d: %q: write \"not built ([open](open.md#ENTRY))\" on this line, with an entry of docs/open.md, or say what is", title, i+1, phrase)
			}
		}
	}
	for entry := range open {
		if !named[entry] {
			t.Errorf("docs/open.md has the entry %q, which no document names: take it out if it was built, else name it where a reader would look", entry)
		}
	}
}

func TestPhrasesOfOpenThings(t *testing.T) {
	for text, found := range map[string]bool{
		"Planned, not built: history": true, "no coordinator feeds it yet": true, "a field that later versions fill": true, "it is not implemented": true,
		"Planned: none":             true,
		"the unit does not run yet": false, "until then it waits": false, "the devices that are planned": false, "where an operator has built it": false,
	} {
		if got := unbuilt.MatchString(text); got != found {
			t.Errorf("%q is found: %t, want %t", text, got, found)
		}
	}
}

// TestLinksLeadToHeadings: a link to a part of a document names a heading of it.
func TestLinksLeadToHeadings(t *testing.T) {
	all := documents(t)
	headings := map[string]map[string]bool{}
	for name, text := range all {
		headings[name] = map[string]bool{}
		fenced := false
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if title := strings.TrimLeft(line, "#"); !fenced && title != line && strings.HasPrefix(title, " ") {
				headings[name][anchor(title)] = true
			}
		}
	}
	link := regexp.MustCompile(`\]\(([^)#\s:]*\.md)?#([^)]+)\)`)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := name
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(name), m[1])
			}
			if of := headings[to]; of != nil && !of[m[2]] {
				t.Errorf("%s links to %s#%s: no heading there has that name", name, to, m[2])
			}
		}
	}
}
