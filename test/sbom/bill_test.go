package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

const sums = `example.org/a v1.2.3 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
example.org/a v1.2.3/go.mod h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
example.org/b v0.1.0+x h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
`

func TestABillNamesEveryModuleWithItsHash(t *testing.T) {
	hashes, err := parseSums(sums)
	if err != nil {
		t.Fatal(err)
	}
	info := &debug.BuildInfo{
		GoVersion: "go1.26.0", Main: debug.Module{Path: "example.org/main", Version: "(devel)"},
		Deps:     []*debug.Module{{Path: "example.org/a", Version: "v1.2.3"}, {Path: "old", Version: "v1", Replace: &debug.Module{Path: "example.org/b", Version: "v0.1.0+x"}}},
		Settings: []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}, {Key: "CGO_CFLAGS", Value: "-I/home/x"}},
	}
	first, err := bill("program", info, hashes)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(first, &d); err != nil {
		t.Fatal(err)
	}
	if d.BOMFormat != "CycloneDX" || len(d.Components) != 3 || d.Components[1].Hashes[0].Content != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" ||
		d.Components[2].PURL != "pkg:golang/example.org/b@v0.1.0%2Bx" || d.Components[0].PURL != "pkg:golang/std@1.26.0" {
		t.Errorf("the bill is\n%s", first)
	}
	if strings.Contains(string(first), "/home") {
		t.Error("the bill names a folder of the machine that built")
	}
	if again, err := bill("program", info, hashes); err != nil || string(again) != string(first) {
		t.Errorf("the same program gives another bill, %v", err)
	}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.org/c", Version: "v1.0.0"})
	if _, err := bill("program", info, hashes); err == nil || !strings.Contains(err.Error(), "example.org/c v1.0.0 is not in go.sum") {
		t.Errorf("a module without a hash: %v", err)
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add(sums)
	f.Add("a b")
	f.Add("a v1 h1:AA==")
	f.Fuzz(func(t *testing.T, text string) {
		hashes, err := parseSums(text)
		for module, sum := range hashes {
			if err == nil && (len(sum) != 64 || !strings.Contains(module, " ")) {
				t.Errorf("%q has the hash %q", module, sum)
			}
		}
	})
}
