package rest

import (
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
)

// This file decides in which form an answer is written: JSON, or YAML where the
// client prefers it.

// produced are the types that answers are written in, the default first.
// Changes that are followed have a third one (watch.go).
func produced() []string { return []string{typeJSON, typeYAML} }

// accept is the type in which the client wants its answer, by its Accept headers,
// or a 406 where it takes none of them. Of several types that are as welcome JSON
// goes first.
func accept(header http.Header) (string, *api.Status) {
	given := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(given) == "" {
		return typeJSON, nil
	}
	best, most := "", 0.0
	for _, kind := range produced() {
		if q := weight(given, kind); q > most {
			best, most = kind, q
		}
	}
	if best == "" && weight(given, typeEvents) > 0 {
		return typeJSON, nil // a watch; its refusals are JSON
	}
	if best == "" {
		return typeJSON, api.Errorf(http.StatusNotAcceptable, "Accept %q: answers are %s", clip(given), strings.Join(produced(), " or "))
	}
	return best, nil
}

// weight is how welcome a type is, 0 for not at all: the most exact range decides
// (RFC 9110, section 12.5.1).
func weight(header, kind string) float64 {
	major, _, _ := strings.Cut(kind, "/")
	welcome, exact := 0.0, 0
	for part := range strings.SplitSeq(header, ",") {
		media, parameters, err := mime.ParseMediaType(part)
		if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
			continue
		}
		exactness := map[string]int{kind: 3, major + "/*": 2, "*/*": 1}[media]
		if exactness <= exact {
			continue
		}
		q := 1.0
		if text, has := parameters["q"]; has {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				q = 0
			}
		}
		welcome, exact = q, exactness
	}
	return welcome
}

// asYAML converts an answer. A page of a list is one document, as in JSON.
func (a *answer) asYAML() {
	body := a.head
	_ = a.list.each(func(part []byte) error {
		body = append(body, part...)
		return nil
	})
	converted, err := yaml.JSONToYAML(body)
	if err != nil {
		panic(err) // the answers' JSON is our own
	}
	a.head = converted
}
