package dev

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/test/manualtest"
)

// misuse marks wrong usage, as the program around the command does.
type misuse struct{ error }

func TestEveryFlagRefusesBadValues(t *testing.T) {
	added := false
	options := Options{
		Version: "test", Usage: func(err error) error { return misuse{err} }, Env: func(string) string { return "" },
		AddContext: func(string, string) (AddedContext, error) {
			added = true
			return AddedContext{}, errors.New("no context is added")
		},
	}
	dir := t.TempDir()
	odd, strange := filepath.Join(dir, "odd.json"), filepath.Join(dir, "folder")
	if err := errors.Join(os.WriteFile(odd, []byte("zzz"), 0o600), os.MkdirAll(filepath.Join(strange, "zzz"), 0o700)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		c := Command(options)
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		c.SetArgs(args)
		parsed := false
		begin := c.RunE
		c.RunE = func(cmd *cobra.Command, args []string) error { parsed = true; return begin(cmd, args) }
		err := c.ExecuteContext(t.Context())
		switch {
		case err == nil:
			return 0, ""
		case !parsed, errors.As(err, new(misuse)):
			return 2, err.Error()
		}
		return 1, err.Error()
	}
	broken := func(values ...string) []manualtest.BadValue {
		var rows []manualtest.BadValue
		for _, v := range values {
			rows = append(rows, manualtest.BadValue{Value: v, Code: 1, Args: []string{"--profile=dgx-a100"}})
		}
		return rows
	}
	manualtest.Flags(t, Command(options), map[string][]manualtest.BadValue{
		"dev --nodes":    {{Value: "0"}, {Value: "-1"}, {Value: "501"}, {Value: "2"}},
		"dev --profile":  {{Value: ""}, {Value: "zzz", Code: 1}, {Value: odd, Code: 1}, {Value: "/nowhere.json", Code: 1}},
		"dev --run-as":   {{Value: "no-such-user"}},
		"dev --data-dir": broken(odd, strange),
		"dev --listen":   {{Value: "zzz"}, {Value: "127.0.0.1"}, {Value: "0.0.0.0:1"}, {Value: "127.0.0.1:70000"}},
	}, nil, run)
	if added {
		t.Error("a context was added by a program that refused its flags")
	}
}
