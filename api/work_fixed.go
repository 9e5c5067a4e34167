package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
)

// checkFixed refuses with 422 a change of a field of a specification that no patch
// may change. The first such field, by its path, is named with both values.
func checkFixed(kind string, has, want any) *Status {
	from, err := fieldsOf(has)
	if err != nil {
		return Errorf(http.StatusInternalServerError, "encode the spec: %v", err)
	}
	to, err := fieldsOf(want)
	if err != nil {
		return Errorf(http.StatusInternalServerError, "encode the spec: %v", err)
	}
	for _, field := range patchableFields(kind) {
		delete(from, field)
		delete(to, field)
	}
	path, was, is, differs := firstChange("spec", from, to)
	if !differs {
		return nil
	}
	return invalid(path, "%s cannot become %s: the field is fixed once it is submitted; %s can change", written(was), written(is), patchable(kind))
}

// fieldsOf are the fields of a specification, as a document has them.
func fieldsOf(spec any) (map[string]any, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	return fields, json.Unmarshal(raw, &fields)
}

// firstChange is the first field, by its path, that two values do not have alike.
func firstChange(path string, has, want any) (at string, was, is any, differs bool) {
	h, both := has.(map[string]any)
	w, all := want.(map[string]any)
	if !both || !all {
		return path, has, want, !reflect.DeepEqual(has, want)
	}
	var keys []string
	for key := range h {
		keys = append(keys, key)
	}
	for key := range w {
		if _, known := h[key]; !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if at, was, is, differs := firstChange(memberPath(path, key), h[key], w[key]); differs {
			return at, was, is, true
		}
	}
	return "", nil, nil, false
}

// memberPath is the path of a field, or of a key that is no plain word.
func memberPath(path, key string) string {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return path + "[" + strconv.Quote(key) + "]"
		}
	}
	return path + "." + key
}

// written shows a value as a document has it, and not without end.
func written(value any) string {
	if value == nil {
		return "nothing"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "a value"
	}
	return clip(string(raw))
}
