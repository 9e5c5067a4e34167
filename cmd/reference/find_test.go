package reference

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPathsLeadToFields(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"a kind":                            {"job", "Job "},
		"a kind in capitals and plural":     {"Jobs", "Job "},
		"a plural in -ies":                  {"authorities", "Authority "},
		"a field":                           {"job.spec.parallelism", "Job spec.parallelism"},
		"a field in other case":             {"JOB.Spec.PARALLELISM", "Job spec.parallelism"},
		"a field of a list":                 {"job.spec.template.spec.scheduling.tolerations.key", "Job spec.template.spec.scheduling.tolerations.key"},
		"a field of a node of a quota tree": {"quotatree.spec.nodes.perOwner", "QuotaTree spec.nodes.perOwner"},
	} {
		t.Run(name, func(t *testing.T) {
			k, f, err := Find(c.path)
			if err != nil || k.Name+" "+f.Path != c.want {
				t.Errorf("%q leads to %v %v, %v; want %s", c.path, k, f, err, c.want)
			}
		})
	}
}

func TestAPathThatLeadsNowhereNamesTheNearest(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"a misspelt kind":                  {"jub", "did you mean job?"},
		"a misspelt kind before a field":   {"jub.spec", "did you mean job.spec?"},
		"a misspelt field":                 {"job.spec.paralelism", "did you mean job.spec.parallelism?"},
		"a misspelt field in the middle":   {"job.spec.templat.spec.resources", "did you mean job.spec.template.spec.resources?"},
		"a field that has none below":      {"job.spec.parallelism.low", "did you mean job.spec.parallelism?"},
		"a word that is near to no field":  {"job.spec.zzzzzz", "want one of parallelism, completions,"},
		"a word that is near to no kind":   {"zzzzzzzz", "want one of job, allocation, node,"},
		"nothing":                          {"", "want one of job, allocation,"},
		"a field that is named twice over": {"job..spec", "want one of apiVersion, kind, metadata, spec, status"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Find(c.path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q is answered %v, want %q", c.path, err, c.want)
			}
		})
	}
}

// Every path of the reference leads to its own field, and a path with a letter too
// many leads to it again by the nearest one.
func TestEveryPathIsFound(t *testing.T) {
	var paths []string
	for _, k := range Kinds() {
		every(k.Fields, func(f Field) { paths = append(paths, strings.ToLower(k.Name)+"."+f.Path) })
	}
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(paths).Draw(t, "path")
		k, f, err := Find(path)
		if err != nil || strings.ToLower(k.Name)+"."+f.Path != path {
			t.Fatalf("%s leads to %v, %v", path, f, err)
		}
		_, _, err = Find(path + "x")
		if err == nil {
			return // another field
		}
		near := err.(*UnknownError).Nearest
		if !slices.Contains(paths, near) && near != "" {
			t.Fatalf("%sx: the nearest path %q is none", path, near)
		}
	})
}

func FuzzFind(f *testing.F) {
	for _, seed := range []string{"job.spec", "", ".", "job.spec.template.spec.", "\x00", "jöb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		k, field, err := Find(path)
		if err == nil && (k == nil || field == nil) {
			t.Errorf("%q leads to %v, %v", path, k, field)
		}
	})
}
