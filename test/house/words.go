package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/test/source"
)

// words are the words in place of a missing noun or of a clearer clause, by the kind
// of their figure.
var words = map[string][]string{
	"what":   {"what"},
	"that":   {"that"},
	"it":     {"it", "its"},
	"one":    {"one"},
	"nobody": {"nobody", "somebody", "anybody", "everybody", "someone", "anyone", "everyone", "nothing", "none"},
	"told":   {"told", "tell", "tells", "said", "say", "says", "heard", "hear", "hears"},
}

// kindOfWord is the kind of a word's figure.
var kindOfWord = func() map[string]string {
	all := map[string]string{}
	for kind, list := range words {
		for _, w := range list {
			all[w] = kind
		}
	}
	return all
}()

// perWords is the number of words of comment to which a limit of a word belongs.
const perWords = 10_000

// wordsOfComments counts each kind of word in the comments of each package, once.
// The limit of a figure grows with the words of the package's comments.
func (c *code) wordsOfComments() []figure {
	if c.words == nil {
		c.words = c.countAllWords()
	}
	return slices.Clone(c.words)
}

func (c *code) countAllWords() []figure {
	counts := map[string]map[string]int{}
	order, total := c.perUnit(func(f *source.File) int {
		of := unit(f)
		if counts[of] == nil {
			counts[of] = map[string]int{}
		}
		return countWords(f, counts[of])
	})
	var out []figure
	for _, of := range order {
		for _, kind := range slices.Sorted(maps.Keys(words)) {
			out = append(out, figure{kind: kind, of: of, value: counts[of][kind], words: total[of], tests: isOfTests(of) || strings.HasSuffix(of, " tests"), note: fmt.Sprintf("in %d words of comment", total[of])})
		}
	}
	return out
}

// countWords adds a file's words of each kind, and returns the number of all words
// of the comments. Directives do not count.
func countWords(f *source.File, by map[string]int) int {
	n := 0
	for _, group := range f.Syntax.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:") || strings.HasPrefix(comment.Text, "//nolint") {
				continue
			}
			for w := range strings.FieldsFuncSeq(comment.Text, isNoLetter) {
				n++
				if kind := kindOfWord[strings.ToLower(w)]; kind != "" {
					by[kind]++
				}
			}
		}
	}
	return n
}

func isNoLetter(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '\''
}
