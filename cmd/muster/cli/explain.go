package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/cmd/manual"
	"github.com/musterd/muster/cmd/reference"
)

// referenceCommands describe Muster itself and need no server.
func (a *app) referenceCommands() []*cobra.Command {
	return []*cobra.Command{a.explainCommand(), parent(manual.Command(a.Version))}
}

func (a *app) explainCommand() *cobra.Command {
	recursive := false
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD…]",
		Short: "Describe a kind of document or one of its fields",
		Long: "explain shows a field's type, meaning, default, range and unit, an example, and the fields below it.\n" +
			"It needs no server. The path has no indexes: job.spec.template.spec.scheduling.tolerations.key.\n" +
			"Besides the kinds of get it knows the bodies of requests, such as deleteoptions, and the answers of\n" +
			"the server, such as explanation.",
		Example: "  muster explain job\n  muster explain job.spec.parallelism\n" +
			"  muster explain allocation.spec.resources --recursive\n  muster explain quotatree.spec.nodes -o json",
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: completePaths,
		RunE: func(_ *cobra.Command, args []string) error {
			k, f, err := find(args[0])
			switch {
			case err != nil:
				return err
			case a.output == "name":
				a.printf("%s\n", strings.Trim(strings.ToLower(k.Name)+"."+f.Path, "."))
				return nil
			case !a.isTable():
				return a.encode(explained{Kind: k.Name, Field: f})
			case recursive:
				return reference.ExplainAll(a.Stdout, k, f)
			}
			return reference.Explain(a.Stdout, k, f)
		},
	}
	cmd.Flags().BoolVar(&recursive, "recursive", false, "show the names and types of all fields below")
	return cmd
}

// explained is the document of -o json and yaml.
type explained struct {
	Kind  string           `json:"kind"`
	Field *reference.Field `json:"field"`
}

// find reads a path whose kind may have one of the short names of get.
func find(path string) (*reference.Kind, *reference.Field, error) {
	word, rest, deeper := strings.Cut(path, ".")
	if k, err := parseKind(word); err == nil {
		path = string(k)
		if deeper {
			path += "." + rest
		}
	}
	k, f, err := reference.Find(path)
	var unknown *reference.UnknownError
	if errors.As(err, &unknown) {
		return nil, nil, Usage(err)
	}
	return k, f, err
}

// completePaths offers the kinds, or the fields below the object that is named.
func completePaths(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	dot := strings.LastIndex(word, ".")
	if dot < 0 {
		var kinds []string
		for _, k := range reference.Kinds() {
			kinds = append(kinds, strings.ToLower(k.Name))
		}
		return kinds, directive
	}
	_, f, err := find(word[:dot])
	if err != nil {
		return nil, directive
	}
	var paths []string
	for _, inner := range f.Fields {
		paths = append(paths, word[:dot+1]+inner.Name)
	}
	return paths, directive
}
