package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type sample struct {
	Name   string   `json:"name"`
	Every  Duration `json:"every"`
	Memory Scalar   `json:"memory"`
}

func read(t *testing.T, text string) (sample, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sample{Name: "default", Every: DurationOf(time.Minute)}
	return s, Read(path, &s)
}

func TestReadOverDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("every: 10s\nmemory: 4096\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sample{Name: "default", Every: DurationOf(time.Minute)}
	if err := Read(path, &s); err != nil {
		t.Fatal(err)
	}
	if want := (sample{"default", DurationOf(10 * time.Second), "4096"}); s != want {
		t.Errorf("read %+v, want %+v", s, want)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unknown field":       {"bogus: x", `unknown field "bogus"`},
		"a field in other case":  {"name: a\nNAME: x", `unknown field "NAME", did you mean "name"?`},
		"a field given twice":    {"name: a\nname: b", `key "name" already set`},
		"a wrong type":           {"name: [1]", "name"},
		"a hexadecimal number":   {"name: a\nmemory: 0x10", "memory (line 2): the value 0x10 is the number 16 to some parsers of YAML"},
		"a word for true":        {"name: yes", "name (line 1): the value yes is true to some parsers of YAML"},
		"not a number":           {"memory: .nan", "memory (line 1): the value .nan is no number"},
		"no YAML":                {"\t{", "yaml"},
		"more than one megabyte": {"name: " + strings.Repeat("x", maxSize), "1048582 bytes, more than 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "c.yaml") {
				t.Errorf("error %v, want %q and the file", err, c.want)
			}
		})
	}
}

func TestChecksNameTheFieldAndTheValue(t *testing.T) {
	check := func(d Duration) error { _, err := d.Check("every", time.Second, time.Minute); return err }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a duration without a unit":   {check(Duration{Bad: "5"}), `every: "5": want a number and a unit, such as "10s" or "1m30s"`},
		"a duration out of range":     {check(DurationOf(time.Hour)), "every: 1h0m0s is outside 1s..1m0s"},
		"a name with a capital":       {CheckName("id", "Node"), `id: "Node": want 1 to 63 of a-z, 0-9, '-' and '.', with a letter or digit at both ends`},
		"an address without a port":   {CheckListen("listen", "127.0.0.1"), `listen: "127.0.0.1": want HOST:PORT`},
		"a port that is too large":    {CheckListen("listen", "127.0.0.1:70000"), `listen: "127.0.0.1:70000": port "70000" is outside 0..65535`},
		"a public address":            {CheckListen("listen", "0.0.0.0:1"), `listen: address "0.0.0.0:1" is not on the loopback interface; without TLS use 127.0.0.1 or [::1]`},
		"port 0 of another's address": {CheckRemote("join[0]", "127.0.0.1:0"), `join[0]: "127.0.0.1:0": port 0 cannot be reached`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.err == nil || c.err.Error() != c.want {
				t.Errorf("error %v, want %s", c.err, c.want)
			}
		})
	}
}
