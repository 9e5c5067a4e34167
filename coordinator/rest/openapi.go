package rest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"sync"

	"sigs.k8s.io/yaml"
)

// This file serves the description of the API: as an OpenAPI document and as a
// page for people. Neither loads anything from elsewhere.

// openAPI is the OpenAPI 3.1 document: made from Routes and from package api by
// make reference, and held fresh by a test.
//
//go:embed openapi.json
var openAPI []byte

//go:embed docs.html
var docsPage string

// openAPIYAML is openAPI in YAML.
var openAPIYAML = sync.OnceValue(func() []byte {
	text, err := yaml.JSONToYAML(openAPI)
	if err != nil {
		panic("rest: openapi.json: " + err.Error()) // a file of this package, which a test reads
	}
	return text
})

// docs is the reference as a page in HTML.
var docs = sync.OnceValue(func() []byte {
	var document map[string]any
	var page bytes.Buffer
	err := json.Unmarshal(openAPI, &document)
	if err == nil {
		err = template.Must(template.New("docs").Funcs(template.FuncMap{"text": schemaWords}).Parse(docsPage)).Execute(&page, document)
	}
	if err != nil {
		panic("rest: docs.html: " + err.Error()) // files of this package, which a test reads
	}
	return page.Bytes()
})

// schemaWords are the type of a schema in words.
func schemaWords(schema map[string]any) string {
	switch kind := schema["type"].(type) {
	case string:
		if items, ok := schema["items"].(map[string]any); ok {
			return "list of " + schemaWords(items)
		}
		if values, ok := schema["additionalProperties"].(map[string]any); ok {
			return "map of " + schemaWords(values)
		}
		return kind
	case []any:
		return fmt.Sprint(kind[0])
	}
	return "value"
}

func (h *handler) routeDescription() {
	h.route("GET /openapi.json", anyone, h.static("application/json", func() []byte { return openAPI }))
	h.route("GET /openapi.yaml", anyone, h.static("application/yaml", openAPIYAML))
	h.route("GET /docs", anyone, h.static("text/html; charset=utf-8", docs))
}

// static serves bytes of this program.
func (h *handler) static(contentType string, content func() []byte) endpoint {
	return func(c *call) (answer, error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		return answer{stream: func() int {
			header, body := c.w.Header(), content()
			header.Set("Content-Type", contentType)
			header.Set("Content-Length", strconv.Itoa(len(body)))
			header.Set("Cache-Control", "no-cache")
			header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			header.Set("X-Content-Type-Options", "nosniff")
			to := h.room.answers.begin(c.w, nil, 0)
			defer to.end()
			c.w.WriteHeader(http.StatusOK)
			if _, err := to.Write(body); err != nil {
				h.Logger.Debug("answer_not_taken", "error", err)
			}
			return http.StatusOK
		}}, nil
	}
}
