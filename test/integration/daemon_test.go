package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/agent/handoff"
)

// settings is a config file's content. Keys of set are paths with dots.
type settings map[string]any

// set changes one setting, and returns the settings.
func (s settings) set(path string, value any) settings {
	head, rest, nested := strings.Cut(path, ".")
	if !nested {
		s[head] = value
		return s
	}
	inner, _ := s[head].(settings)
	if inner == nil {
		inner = settings{}
		s[head] = inner
	}
	inner.set(rest, value)
	return s
}

// clone returns an independent copy.
func (s settings) clone() settings {
	c := settings{}
	for k, v := range s {
		if inner, ok := v.(settings); ok {
			v = inner.clone()
		}
		c[k] = v
	}
	return c
}

// daemon is a program with a config file and a data folder of its own, which
// is killed and started again. It runs at most once at a time.
type daemon struct {
	t        *testing.T
	name     string
	program  string
	settings settings
	dataDir  string
	file     string // the config file
	env      []string
	process  *process // the last one started
}

func newDaemon(t *testing.T, name, program string, s settings, env ...string) *daemon {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{t: t, name: name, program: program, settings: s, dataDir: filepath.Join(dir, "data"), file: filepath.Join(dir, "config.yaml"), env: env}
	d.settings.set("dataDir", d.dataDir)
	d.configure(d.settings)
	return d
}

// configure writes the config file.
func (d *daemon) configure(s settings) {
	d.t.Helper()
	text, err := yaml.Marshal(s)
	if err != nil {
		d.t.Fatal(err)
	}
	write(d.t, d.file, text, 0o600)
}

// start runs it with its config file.
func (d *daemon) start(args ...string) *process {
	d.t.Helper()
	d.process = launch(d.t, d.name, d.env, d.program, append([]string{"--config", d.file}, args...)...)
	return d.process
}

// kill ends it as a crash does.
func (d *daemon) kill() {
	d.t.Helper()
	if !d.process.alive() {
		d.t.Fatalf("%s has ended before it could be killed: %s", d.name, d.process.cmd.ProcessState)
	}
	d.process.kill(d.t)
}

// stop ends it as systemd does.
func (d *daemon) stop() {
	d.t.Helper()
	d.process.mustStop(d.t, syscall.SIGTERM)
}

// refuses starts it where it must refuse to run: it has to end by itself with
// this exit code, and say each of these.
func (d *daemon) refuses(code int, args []string, says ...string) {
	d.t.Helper()
	p := launch(d.t, d.name+" that must refuse", d.env, d.program, append([]string{"--config", d.file}, args...)...)
	got := p.wait(d.t, patience)
	text := p.stderr.String()
	if got != code {
		d.t.Errorf("%s ended with code %d, want %d; it said:\n%s", d.name, got, code, tail(text))
	}
	// The reason is the last thing said; logs may come before.
	reason := text[max(0, strings.LastIndex(text, d.program+": ")):]
	for _, want := range says {
		if !strings.Contains(reason, want) {
			d.t.Errorf("%s refused without saying %q:\n%s", d.name, want, tail(text))
		}
	}
}

// write writes a file whole.
func write(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

// read reads a file whole.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// folder returns the content of every regular file below a folder that stays
// while it is read.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || e.Name() == handoff.RoomFile {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files[strings.TrimPrefix(path, dir)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// differing names the files that are not the same in both.
func differing(a, b map[string]string) []string {
	var names []string
	for name := range a {
		if other, ok := b[name]; !ok || other != a[name] {
			names = append(names, fmt.Sprintf("%s (%d bytes, then %d)", name, len(a[name]), len(other)))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name+" (new)")
		}
	}
	slices.Sort(names)
	return names
}
