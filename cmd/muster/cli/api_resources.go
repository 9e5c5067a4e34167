package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// apiResource is a kind in the answer of muster api-resources.
type apiResource struct {
	Name       string   `json:"name"`
	ShortNames []string `json:"shortNames,omitempty"`
	Namespaced bool     `json:"namespaced"`
	Kind       string   `json:"kind"`
}

// apiResourcesCommand lists the kinds that this program has calls for, without a
// request to the server.
func (a *app) apiResourcesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "api-resources",
		Short: "List the kinds of objects and their short names",
		Long: "List the kinds of objects, the short names that commands take for them, and whether their objects are in namespaces.\n" +
			"muster explain KIND describes the fields of a kind.",
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			var all []apiResource
			for _, k := range allKinds() {
				c := k.client()
				all = append(all, apiResource{Name: c.Plural, ShortNames: c.Short, Namespaced: c.Namespaced, Kind: c.Document})
			}
			if a.output == "name" {
				for _, r := range all {
					a.printf("%s\n", r.Name)
				}
				return nil
			}
			if !a.isTable() {
				return a.encode(all)
			}
			t := newTable("NAME", "SHORTNAMES", "NAMESPACED", "KIND")
			for _, r := range all {
				t.add(r.Name, strings.Join(r.ShortNames, ","), strconv.FormatBool(r.Namespaced), r.Kind)
			}
			t.write(a.Stdout, "")
			return nil
		},
	}
}
