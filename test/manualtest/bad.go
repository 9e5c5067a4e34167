package manualtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// BadValue is a value that a flag must refuse.
type BadValue struct {
	// Value is written behind the flag, and the refusal must show it, or Shown.
	Value, Shown string
	// Args stand behind the flag: arguments and other flags that the command needs.
	Args []string
	// Code is the exit code, 2 where it is 0. A refusal of the server ends with 1.
	Code int
	// Names is the name in the refusal, where it is not that of the flag.
	Names string
}

// Run runs a program and returns its exit code and standard error.
type Run func(args ...string) (code int, stderr string)

// generated are values that the type of a flag excludes.
func generated(kind string) []BadValue {
	var all []BadValue
	values := map[string][]string{
		"bool": {"maybe", "7"}, "int": {"many", "1.5", "NaN", "1e99", "99999999999999999999"}, "duration": {"soon", "1e99", "NaN", "-", "99999999999999h"},
	}
	for _, v := range values[kind] {
		all = append(all, BadValue{Value: v})
	}
	return all
}

// Flags checks that every flag of every command refuses bad values with the name of
// the flag and the value: those of another type, and rows. A flag of text without a
// row stands in free, with the reason. Rows are named COMMAND --FLAG.
func Flags(t *testing.T, root *cobra.Command, rows map[string][]BadValue, free map[string]string, run Run) {
	t.Helper()
	root.InitDefaultCompletionCmd()
	known := map[string]bool{}
	for _, c := range commands(root) {
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" {
				return
			}
			id := c.CommandPath() + " --" + f.Name
			known[id] = true
			byType := generated(f.Value.Type())
			switch {
			case f.Value.Type() != "bool" && len(rows[id]) == 0 && free[id] == "":
				t.Errorf("%s has no row with a bad value: add one, or say why there is none", id)
			case len(rows[id]) > 0 && free[id] != "":
				t.Errorf("%s has rows with bad values and a reason why there are none", id)
			}
			for _, bad := range append(byType, rows[id]...) {
				refused(t, c, f, bad, run)
			}
		})
	}
	for _, table := range [][]string{keys(rows), keys(free)} {
		for _, id := range table {
			if !known[id] {
				t.Errorf("%s is no flag", id)
			}
		}
	}
}

func keys[T any](m map[string]T) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// longest bounds a refusal, in bytes.
const longest = 1200

func refused(t *testing.T, c *cobra.Command, f *pflag.Flag, bad BadValue, run Run) {
	t.Helper()
	args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name+"="+bad.Value)
	args = append(args, bad.Args...)
	code, stderr := run(args...)
	want, name, shown := bad.Code, bad.Names, bad.Shown
	if want == 0 {
		want = 2
	}
	if shown == "" {
		shown = bad.Value
	}
	named := strings.Contains(stderr, "--"+f.Name) || f.Shorthand != "" && strings.Contains(stderr, "-"+f.Shorthand+" ")
	if name != "" {
		named = strings.Contains(stderr, name)
	}
	if code != want || !named || !strings.Contains(stderr, shown) || len(stderr) > longest {
		t.Errorf("%.120q: exit code %d, want %d; the flag and %q are to be in %.400q", args, code, want, shown, stderr)
	}
}
