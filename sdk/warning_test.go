package sdk

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarningsOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"none":                           {nil, nil},
		"one":                            {[]string{`299 muster "nothing hands it out"`}, []string{`299 muster nothing hands it out`}},
		"two lines":                      {[]string{`299 muster "a"`, `299 muster "b"`}, []string{`299 muster a`, `299 muster b`}},
		"two in a line, one with a date": {[]string{`299 a "x, y" "Mon, 01 Jan 2026 00:00:00 GMT", 199 b "z"`}, []string{`299 a x, y`, `199 b z`}},
		"quotes and a backslash":         {[]string{`299 muster "is \"cpu\" meant? \\"`}, []string{`299 muster is "cpu" meant? \`}},
		"no code":                        {[]string{`muster "a"`}, nil},
		"a text that does not end":       {[]string{`299 muster "a`}, nil},
		"a text that ends in a slash":    {[]string{`299 muster "a\`}, nil},
		"an escape of a terminal":        {[]string{"299 muster \"\x1b[2J\""}, nil},
		"a text that is too long":        {[]string{`299 muster "` + strings.Repeat("a", 5000) + `"`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			WarningHandler(func(code int, agent, text string) { got = append(got, fmt.Sprint(code, " ", agent, " ", text)) }).deliver(http.Header{"Warning": c.lines})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	WarningHandler(nil).deliver(http.Header{"Warning": {`299 muster "a"`}})
}

func FuzzWarning(f *testing.F) {
	for _, seed := range []string{`299 muster "a"`, `299 a "x" "date", 199 b "z"`, `299 muster "\"\\"`, `299 muster "`, `1 2 3`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		count := 0
		WarningHandler(func(code int, agent, text string) {
			count++
			if code < 100 || code > 999 || agent == "" || text == "" || len(text) > longestText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q holds %d %q %q", line, code, agent, text)
			}
		}).deliver(http.Header{"Warning": {line}})
		if count > mostWarnings {
			t.Errorf("%d warnings of one answer", count)
		}
	})
}
