package rest

import (
	"net/http"
	"testing"
)

func TestAcceptDecidesTheFormOfAnAnswer(t *testing.T) {
	for given, want := range map[string]string{
		"":                     typeJSON,
		"*/*":                  typeJSON,
		"application/*":        typeJSON,
		"application/json":     typeJSON,
		"application/yaml":     typeYAML,
		"application/YAML":     typeYAML,
		"text/html, */*;q=0.1": typeJSON,
		"application/yaml;q=0.9, application/json;q=0.5": typeYAML,
		"application/json;q=0.5, application/yaml;q=0.5": typeJSON,
		"application/json;q=0, */*":                      typeYAML,
		"text/event-stream":                              typeJSON, // of a watch
		"text/html":                                      "",
		"application/json;q=0":                           "",
		"application/yaml;q=2":                           "",
		"rubbish":                                        "",
		"application/vnd.api+json;version=1, application/json;v=1": typeJSON,
	} {
		t.Run(given, func(t *testing.T) {
			header := http.Header{}
			if given != "" {
				header.Set("Accept", given)
			}
			got, status := accept(header)
			if (status != nil) != (want == "") || status == nil && got != want || status != nil && status.Code != http.StatusNotAcceptable {
				t.Errorf("got %s, %v; want %s", got, status, want)
			}
		})
	}
}

func FuzzAccept(f *testing.F) {
	for _, s := range []string{"*/*;q=0.5", "application/yaml, application/json;q=0", ";;,q=", "a/b;q=NaN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, given string) {
		kind, status := accept(http.Header{"Accept": {given}})
		if kind != typeJSON && kind != typeYAML || status != nil && status.Code != http.StatusNotAcceptable {
			t.Errorf("%q: %s, %v", given, kind, status)
		}
	})
}
