package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/reference"
	"github.com/musterd/muster/coordinator/rest/restdoc"
	"github.com/musterd/muster/test/fresh"
)

// object is an object of JSON.
type object = map[string]any

func TestTheOpenAPIDocumentIsFresh(t *testing.T) {
	text, err := json.MarshalIndent(openAPIDocument(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	fresh.File(t, "openapi.json", string(text)+"\n")
}

// openAPIDocument describes the API in the form of OpenAPI 3.1
// (https://spec.openapis.org/oas/v3.1.1): its schemas are JSON Schema 2020-12.
func openAPIDocument(t *testing.T) object {
	t.Helper()
	schemas, paths := object{}, object{}
	for _, k := range reference.Kinds() {
		s := schemaOf(t, k.Field)
		delete(s, "required") // some routes answer a part of a kind, such as its status
		schemas[k.Name] = s
	}
	for _, r := range restdoc.Routes() {
		for _, kind := range []string{r.Body, r.Answer} {
			if one, isList := strings.CutSuffix(kind, "List"); isList {
				schemas[kind] = listSchema(one)
			}
		}
		item, _ := paths[r.Path].(object)
		if item == nil {
			item = object{}
			paths[r.Path] = item
		}
		item[strings.ToLower(r.Method)] = operation(t, r)
	}
	return object{
		"openapi": "3.1.1",
		"info": object{
			"title": "Muster", "version": api.APIVersion,
			"description": "The REST API of Muster: allocations of GPUs, CPUs and memory, jobs, nodes and quota. Bodies of requests are JSON or YAML.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []any{object{"url": "/"}},
		"security": []any{object{"token": []any{}}},
		"paths":    paths,
		"components": object{
			"schemas":         schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// operation describes one route.
func operation(t *testing.T, r restdoc.Route) object {
	t.Helper()
	target, document, _ := strings.Cut(r.Example, " ")
	o := object{
		"operationId": operationID(r), "description": r.Text, "tags": []any{tagOf(r.Path)}, "responses": responses(r), "x-muster-access": r.Access,
		"x-muster-example": strings.TrimSpace(r.Method + " " + target + "\n\n" + document),
	}
	var all []any
	for _, name := range placeholder.FindAllStringSubmatch(r.Path, -1) {
		all = append(all, object{"name": name[1], "in": "path", "required": true, "schema": object{"type": "string"}, "description": "The name in the path."})
	}
	for _, name := range r.Parameters {
		all = append(all, object{"name": name, "in": "query", "schema": object{"type": "string"}, "description": parameters[name][2] + " " + parameters[name][0] + "."})
	}
	if all != nil {
		o["parameters"] = all
	}
	if r.Access == "anyone" {
		o["security"] = []any{}
	}
	if r.Body != "" {
		o["requestBody"] = requestBody(r)
	}
	return o
}

func requestBody(r restdoc.Route) object {
	if r.Method == http.MethodPatch {
		return object{
			"description": "A merge patch (RFC 7386) of a " + r.Body + ".", "required": true,
			"content": object{"application/merge-patch+json": object{"schema": object{"type": "object"}}},
		}
	}
	content := object{"schema": schemaRef(r.Body)}
	return object{"description": "A " + r.Body + ".", "required": !r.Optional, "content": object{"application/json": content, "application/yaml": content}}
}

// schemaRef refers to the schema of a kind.
func schemaRef(kind string) object { return object{"$ref": "#/components/schemas/" + kind} }

func responses(r restdoc.Route) object {
	status := object{"application/json": object{"schema": schemaRef("Status")}}
	all := object{"default": object{"description": "The request is refused or has failed.", "content": status}}
	success := object{"description": "Success."}
	if r.Answer != "" {
		schema := schemaRef(r.Answer)
		success["description"] = "A " + r.Answer + "."
		if slices.Contains(r.Parameters, "dryRun") && (r.Answer == api.KindAllocation || r.Answer == api.KindJob) {
			schema = object{"anyOf": []any{schema, schemaRef("Explanation")}}
		}
		if r.Path == "/readyz" { // a program without other coordinators answers "ok"
			schema = object{"anyOf": []any{schema, object{"type": "string"}}}
		}
		content := object{"application/json": object{"schema": schema}}
		if slices.Contains(r.Parameters, "watch") {
			content["text/event-stream"] = object{"schema": object{"type": "string"}}
		}
		success["content"] = content
	}
	all[strconv.Itoa(r.Code)] = success
	if r.Method == http.MethodPut {
		all[strconv.Itoa(http.StatusCreated)] = success
	}
	if slices.Contains(r.Parameters, "dryRun") && r.Code == http.StatusCreated { // or the request is repeated under its Idempotency-Key
		all[strconv.Itoa(http.StatusOK)] = success
	}
	for code, meaning := range r.Refusals {
		all[strconv.Itoa(code)] = object{"description": meaning, "content": status}
	}
	return all
}

// operationID is a name of a route, unique in the document.
func operationID(r restdoc.Route) string {
	id := strings.ToLower(r.Method)
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(r.Path, "/api/v1"), "/"), "/") {
		part = strings.Trim(strings.ReplaceAll(part, ".", "-"), "{}")
		if part != "" {
			id += "-" + part
		}
	}
	return id
}

// tagOf is the kind of objects that a path is about.
func tagOf(path string) string {
	rest, isAPI := strings.CutPrefix(path, "/api/v1/")
	if !isAPI {
		return "program"
	}
	if _, below, namespaced := strings.Cut(rest, "namespaces/{namespace}/"); namespaced {
		rest = below
	}
	tag, _, _ := strings.Cut(rest, "/")
	return tag
}

func listSchema(kind string) object {
	text := object{"type": "string"}
	meta := object{"type": "object", "description": "The revision of the list and the token of the next page.", "properties": object{"resourceVersion": text, "continue": text}}
	if kind == api.KindEvent {
		meta = object{"type": "object", "description": "The revision of the list, the token of the next page, and the time since which the coordinator has every event.", "properties": object{"resourceVersion": text, "continue": text, "since": text}}
	}
	return object{
		"type": "object", "description": "A list of " + kind + "s.", "required": []any{"items"},
		"properties": object{
			"apiVersion": text, "kind": object{"type": "string", "enum": []any{kind + "List"}},
			"metadata": meta,
			"items":    object{"type": "array", "items": schemaRef(kind)},
		},
	}
}

// schemaOf is a field of the reference as a schema.
func schemaOf(t *testing.T, f reference.Field) object {
	t.Helper()
	s := typeSchema(t, f, f.Type)
	s["description"] = f.Text
	if f.Unit != "" {
		s["x-muster-unit"] = f.Unit
	}
	if f.ReadOnly {
		s["readOnly"] = true
	}
	if f.Example != "" {
		var example any
		if err := yaml.Unmarshal([]byte(f.Example), &example); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		if _, isText := s["type"].(string); isText && s["type"] == "string" {
			example = f.Example
		}
		s["examples"] = []any{example}
	}
	return s
}

// typeSchema is the schema of a type in words, without its texts.
func typeSchema(t *testing.T, f reference.Field, words string) object {
	t.Helper()
	if of, ok := strings.CutPrefix(words, "list of "); ok {
		return object{"type": "array", "items": typeSchema(t, f, of)}
	}
	if of, ok := strings.CutPrefix(words, "map of "); ok {
		return object{"type": "object", "additionalProperties": typeSchema(t, f, of)}
	}
	switch words {
	case "object":
		s := object{"type": "object"}
		properties, required := object{}, []any{}
		for _, inner := range f.Fields {
			properties[inner.Name] = schemaOf(t, inner)
			if inner.Required && !f.ReadOnly {
				required = append(required, inner.Name)
			}
		}
		if _, isReason := properties["have"]; isReason { // resource.Reason computes it as it is written
			properties["short"] = object{"type": "string", "description": "The amount that is missing: want less have."}
		}
		if len(properties) > 0 {
			s["properties"] = properties
		}
		if len(required) > 0 {
			s["required"] = required
		}
		return s
	case "boolean":
		if f.Path == "spec.nodes.hard" { // a quota tree comes back as it was submitted
			return object{"type": []any{"boolean", "string"}}
		}
		return object{"type": words}
	case "number":
		return object{"type": words}
	case "integer":
		return bounded(t, object{"type": words}, f)
	case "time (RFC 3339)":
		return object{"type": "string", "format": "date-time"}
	case "quantity":
		return object{"type": []any{"string", "number"}}
	}
	s := object{"type": "string"}
	if f.Values != nil {
		s["enum"] = texts(f.Values)
	}
	return s
}

func texts(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// bounded adds the range of a whole number.
func bounded(t *testing.T, s object, f reference.Field) object {
	t.Helper()
	low, high, _ := strings.Cut(f.Range, "..")
	for key, text := range map[string]string{"minimum": low, "maximum": high} {
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: range %q: %v", f.Path, f.Range, err)
		}
		s[key] = n
	}
	return s
}

func TestTheDescriptionIsServed(t *testing.T) {
	h := documentedWorld(t)
	for path, want := range map[string]struct{ contentType, content string }{
		"/openapi.json": {"application/json", `"openapi": "3.1.1"`},
		"/openapi.yaml": {"application/yaml", "openapi: 3.1.1"},
		"/docs":         {"text/html; charset=utf-8", `id="post-namespaces-namespace-jobs"`},
	} {
		answer := sendExample(h, "GET", path, "")
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != want.contentType || !strings.Contains(answer.Body.String(), want.content) {
			t.Errorf("%s is answered %d %s without %q: %.200s", path, answer.Code, answer.Header().Get("Content-Type"), want.content, answer.Body)
		}
	}
	var fromJSON, fromYAML any
	if err := json.Unmarshal(sendExample(h, "GET", "/openapi.json", "").Body.Bytes(), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(sendExample(h, "GET", "/openapi.yaml", "").Body.Bytes(), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(fromJSON) != fmt.Sprint(fromYAML) {
		t.Error("openapi.yaml and openapi.json differ")
	}
}

// The page has each route and each kind, and loads nothing.
func TestThePageHasEveryRouteAndKind(t *testing.T) {
	page := sendExample(documentedWorld(t), "GET", "/docs", "").Body.String()
	ids := map[string]bool{}
	for _, r := range restdoc.Routes() {
		if id := operationID(r); ids[id] || !strings.Contains(page, `<details id="`+id+`">`) {
			t.Errorf("%s: its id %s is absent or taken", r.Pattern(), id)
		} else {
			ids[id] = true
		}
	}
	for _, k := range reference.Kinds() {
		if !strings.Contains(page, `<details id="`+k.Name+`">`) {
			t.Errorf("the page has no kind %s", k.Name)
		}
	}
	for _, load := range []string{"<script", "src=", "@import", "url("} {
		if strings.Contains(page, load) {
			t.Errorf("the page has %q", load)
		}
	}
}
