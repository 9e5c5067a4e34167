package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
)

// The part of CycloneDX 1.6 that is used (https://cyclonedx.org/docs/1.6/json).
type document struct {
	BOMFormat   string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref,omitempty"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// parseSums returns the hashes of the modules' contents, in hex, by
// "module version". It refuses a line that is none of go.sum.
func parseSums(text string) (map[string]string, error) {
	hashes := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%q: want a module, a version and a hash", line)
		}
		if strings.HasSuffix(fields[1], "/go.mod") {
			continue
		}
		encoded, ok := strings.CutPrefix(fields[2], "h1:")
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(sum) != 32 {
			return nil, fmt.Errorf("%q: want h1: and a SHA-256 in base64", line)
		}
		hashes[fields[0]+" "+fields[1]] = hex.EncodeToString(sum)
	}
	return hashes, nil
}

// settings are what decides how a program is built.
var settings = map[string]bool{"CGO_ENABLED": true, "GOOS": true, "GOARCH": true, "-trimpath": true, "vcs.revision": true, "vcs.modified": true}

// bill is the bill of a program. Modules are in the linker's order, by path.
func bill(name string, info *debug.BuildInfo, hashes map[string]string) ([]byte, error) {
	d := document{
		BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{component{Type: "application", Ref: name, Name: name, Version: info.Main.Version, PURL: purl(info.Main.Path, info.Main.Version)}},
		Components: []component{{
			Type: "library", Ref: "std", Name: "std", Version: info.GoVersion, PURL: purl("std", strings.TrimPrefix(info.GoVersion, "go")),
		}},
	}
	for _, s := range info.Settings {
		if settings[s.Key] {
			d.Metadata.Component.Properties = append(d.Metadata.Component.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		sum, known := hashes[m.Path+" "+m.Version]
		if !known {
			return nil, fmt.Errorf("module %s %s is not in go.sum", m.Path, m.Version)
		}
		d.Components = append(d.Components, component{
			Type: "library", Ref: m.Path, Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version), Hashes: []hash{{"SHA-256", sum}},
		})
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// purl names a Go module (https://github.com/package-url/purl-spec).
func purl(path, version string) string {
	if version == "" || version == "(devel)" {
		return "pkg:golang/" + path
	}
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
