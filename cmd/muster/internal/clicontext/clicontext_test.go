package clicontext

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// put makes a file with contexts, the first of which is current.
func put(t *testing.T, path string, current string, contexts map[string]Context) {
	t.Helper()
	if err := Update(path, func(f *File) error {
		*f = File{Current: current, Contexts: contexts}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, path string) File {
	t.Helper()
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSavedContextsAreLoadedAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "context.json")
	want := File{Current: "a", Contexts: map[string]Context{}}
	for name, c := range map[string]Context{"a": {Addr: "http://127.0.0.1:1", Token: "a"}, "b": {Addr: "http://127.0.0.1:2", Token: "b", Namespace: "ml"}} {
		want.Contexts[name] = c
		if err := Update(path, func(f *File) error { f.Current, f.Contexts[name] = name, c; return nil }); err != nil {
			t.Fatal(err)
		}
		want.Current = name
	}
	if diff := cmp.Diff(want, load(t, path)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files left in the folder, want 1 (%v)", len(entries), err)
	}
}

func TestAChangeThatFailsLeavesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "context.json")
	before := map[string]Context{"prod": {Addr: "https://prod:1", Token: "secret"}}
	put(t, path, "prod", before)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*File) error{
		"an error of the change":        func(f *File) error { f.Contexts["x"] = Context{}; return errors.New("no") },
		"a current one that is missing": func(f *File) error { f.Current = "x"; return nil },
		"a name that a shell splits":    func(f *File) error { f.Contexts["a b"] = Context{}; return nil },
	} {
		if err := Update(path, change); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(raw) {
			t.Errorf("%s: the file has changed: %s, %v", name, after, err)
		}
	}
}

func TestASymbolicLinkStays(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "kept", "c.json"), filepath.Join(folder, "link.json")
	put(t, target, "", map[string]Context{})
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	put(t, link, "a", map[string]Context{"a": {Addr: "http://127.0.0.1:1"}})
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if f := load(t, target); f.Current != "a" {
		t.Errorf("the link's target has %+v", f)
	}
}

// FAULTS U2: files of the version with one context without a name.
func TestAFileWithASingleContextIsCarriedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "context.json")
	old := `{"addr":"https://prod:8470","token":"t","namespace":"ml","certificateAuthority":"/ca.pem"}`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	want := Context{Addr: "https://prod:8470", Token: "t", Namespace: "ml", CertificateAuthority: "/ca.pem"}
	f := load(t, path)
	if diff := cmp.Diff(File{Current: CarriedOver, Contexts: map[string]Context{CarriedOver: want}}, f); diff != "" {
		t.Error(diff)
	}
	l, err := AddDev(path, os.Getpid(), Context{Addr: "http://127.0.0.1:1", Token: "d"})
	if err != nil {
		t.Fatal(err)
	}
	if f := load(t, path); f.Current != "dev" || f.Contexts[CarriedOver] != want {
		t.Errorf("beside muster dev the file has %+v", f)
	}
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, load(t, path)); diff != "" {
		t.Errorf("after muster dev (-before +after):\n%s", diff)
	}
}

// gone is the id of no process: ids end below 2^22.
const gone = 1 << 29

func TestTheContextOfMusterDev(t *testing.T) {
	prod := Context{Addr: "https://prod:1", Token: "p"}
	cluster := Context{Addr: "http://127.0.0.1:9", Token: "d"}
	for name, c := range map[string]struct {
		current     string
		contexts    map[string]Context
		meanwhile   func(*File)
		wantName    string
		wantCurrent string // at the end
		wantLeft    []string
	}{
		"without a file":     {wantName: "dev"},
		"beside another":     {current: "prod", contexts: map[string]Context{"prod": prod}, wantName: "dev", wantCurrent: "prod", wantLeft: []string{"prod"}},
		"a person's own dev": {current: "dev", contexts: map[string]Context{"dev": prod}, wantName: "dev-2", wantCurrent: "dev", wantLeft: []string{"dev"}},
		"another muster dev runs": {
			current: "dev", contexts: map[string]Context{"dev": {Addr: "x", Dev: &Dev{PID: os.Getpid(), Former: "prod"}}, "prod": prod},
			wantName: "dev-2", wantCurrent: "dev", wantLeft: []string{"dev", "prod"},
		},
		"a killed muster dev left its context": {
			current: "dev", contexts: map[string]Context{"dev": {Addr: "x", Dev: &Dev{PID: gone, Former: "prod"}}, "prod": prod},
			wantName: "dev", wantCurrent: "prod", wantLeft: []string{"prod"},
		},
		"a person chooses another meanwhile": {
			current: "prod", contexts: map[string]Context{"prod": prod, "lab": prod}, meanwhile: func(f *File) { f.Current = "lab" },
			wantName: "dev", wantCurrent: "lab", wantLeft: []string{"lab", "prod"},
		},
		"the former one is deleted meanwhile": {
			current: "prod", contexts: map[string]Context{"prod": prod}, meanwhile: func(f *File) { delete(f.Contexts, "prod") },
			wantName: "dev", wantCurrent: "",
		},
		"a person makes it their own meanwhile": {
			meanwhile: func(f *File) { f.Contexts["dev"] = prod },
			wantName:  "dev", wantCurrent: "dev", wantLeft: []string{"dev"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "context.json")
			if c.contexts != nil {
				put(t, path, c.current, c.contexts)
			}
			l, err := AddDev(path, os.Getpid(), cluster)
			if err != nil {
				t.Fatal(err)
			}
			f := load(t, path)
			if l.Name != c.wantName || f.Current != c.wantName || f.Contexts[l.Name].Token != "d" {
				t.Errorf("it took %q, and the file has %+v", l.Name, f)
			}
			if c.meanwhile != nil {
				if err := Update(path, func(f *File) error { c.meanwhile(f); return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.End(); err != nil {
				t.Fatal(err)
			}
			f = load(t, path)
			if diff := cmp.Diff(c.wantLeft, f.Names()); diff != "" || f.Current != c.wantCurrent {
				t.Errorf("at the end %q is current, want %q; contexts (-want +got):\n%s", f.Current, c.wantCurrent, diff)
			}
		})
	}
}

func TestTwoMusterDevsEndInAnyOrder(t *testing.T) {
	for name, firstFirst := range map[string]bool{"the first ends first": true, "the second ends first": false} {
		path := filepath.Join(t.TempDir(), "context.json")
		put(t, path, "prod", map[string]Context{"prod": {Addr: "https://prod:1"}})
		one, err := AddDev(path, os.Getpid(), Context{Token: "1"})
		if err != nil {
			t.Fatal(err)
		}
		two, err := AddDev(path, os.Getpid(), Context{Token: "2"})
		if err != nil {
			t.Fatal(err)
		}
		ends := []*Lease{two, one}
		if firstFirst {
			ends = []*Lease{one, two}
		}
		for _, l := range ends {
			if err := l.End(); err != nil {
				t.Fatal(err)
			}
		}
		if f := load(t, path); f.Current != "prod" || len(f.Contexts) != 1 {
			t.Errorf("%s: %+v is left", name, f)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		mode    fs.FileMode
		content string
		want    string
	}{
		"readable by others":          {0o644, `{}`, "others may use it (mode 0644): chmod 600 "},
		"not JSON":                    {0o600, `addr: x`, "invalid character"},
		"an unknown field":            {0o600, `{"address":"x"}`, `unknown field "address"`},
		"a field in another case":     {0o600, `{"contexts":{"a":{"Token":"x"}}}`, `unknown field "contexts.a.Token", did you mean "token"?`},
		"a context that is missing":   {0o600, `{"currentContext":"b","contexts":{}}`, `currentContext: "b" is not among the contexts`},
		"a name with a space":         {0o600, `{"contexts":{"a b":{}}}`, `"a b" is not the name of a context`},
		"a context given twice":       {0o600, `{"contexts":{"a":{},"a":{}}}`, `contexts.a: the field is given twice`},
		"more than one document":      {0o600, `{"contexts":{}} {}`, "invalid character"},
		"more than a million bytes":   {0o600, strings.Repeat(" ", maxFile+1), "1048577 bytes, more than 1048576"},
		"a token that is no text":     {0o600, `{"contexts":{"a":{"token":5}}}`, "token"},
		"contexts that are no object": {0o600, `{"contexts":[]}`, "contexts"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "context.json")
			if err := os.WriteFile(path, []byte(c.content), c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q in it and the file", err, c.want)
			}
			if err := Update(path, func(*File) error { return nil }); err == nil {
				t.Error("it was replaced")
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != c.content {
				t.Errorf("the file has changed: %s, %v", after, err)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder was loaded")
	}
}

func TestPathIsTheVariablesOrTheUsers(t *testing.T) {
	got, err := Path(func(string) string { return "/elsewhere/c.json" })
	if err != nil || got != "/elsewhere/c.json" {
		t.Errorf("got %q, %v", got, err)
	}
	t.Setenv("XDG_CONFIG_HOME", "/home/x/.config")
	got, err = Path(func(string) string { return "" })
	if err != nil || got != "/home/x/.config/muster/context.json" {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzDecode finds that no content panics, and that a file which is read is
// written and read again as the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"currentContext":"a","contexts":{"a":{"addr":"http://127.0.0.1:1","token":"x","dev":{"pid":1,"former":"b"}}}}`))
	f.Add([]byte(`{"addr":"http://127.0.0.1:1","token":"x"}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"contexts":{"a":null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Decode(raw)
		if err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "c.json")
		if err := Update(path, func(f *File) error { *f = got; return nil }); err != nil {
			t.Fatalf("%+v is read and not written: %v", got, err)
		}
		if got.Contexts == nil {
			got.Contexts = load(t, path).Contexts
		}
		if diff := cmp.Diff(got, load(t, path)); diff != "" {
			t.Errorf("written and read again (-before +after):\n%s", diff)
		}
	})
}
