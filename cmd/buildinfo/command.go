package buildinfo

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
)

// Describe is the version of this program with the versions of Go and of the API,
// as documents have them.
func Describe(version string) api.Version {
	return api.Version{Version: version, GoVersion: runtime.Version(), APIVersion: api.APIVersion}
}

// Command is the command version of a program without a server to ask: the line of
// --version, or with -o json or yaml the document that muster version shows as
// client. usage marks an error as wrong usage.
func Command(usage func(error) error) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version",
		Long: "version prints the line of --version, or with -o json or yaml the versions of the program, of Go\nand of the API, as muster version -o json shows them for the client.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := written(cmd.Root().Name(), output)
			if err != nil {
				return usage(err)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// written is the version in an output format, with a line feed at the end.
func written(program, output string) (string, error) {
	switch output {
	case "text":
		return program + " " + Version() + "\n", nil
	case "json":
		doc, err := json.MarshalIndent(Describe(Version()), "", "  ")
		return string(doc) + "\n", err
	case "yaml":
		doc, err := yaml.Marshal(Describe(Version()))
		return string(doc), err
	}
	return "", fmt.Errorf("--output: %q: want text, json or yaml", output)
}
