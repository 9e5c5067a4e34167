package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/buildinfo"
)

// versions is the document of -o json and yaml.
type versions struct {
	Client api.Version  `json:"client"`
	Server *api.Version `json:"server,omitempty"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and, if one answers, of the server",
		Args:  arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Client: buildinfo.Describe(a.Version)}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
			defer cancel()
			err := a.connect()
			if err == nil {
				v.Server, err = a.client.Version(ctx)
			}
			if !a.isTable() {
				return a.encode(v)
			}
			a.printf("client   %s (%s, API %s)\n", v.Client.Version, v.Client.GoVersion, v.Client.APIVersion)
			if err != nil {
				a.printf("server   not asked: %s\n", oneLine(a.advise(cmd.Context(), err)))
				return nil
			}
			a.printf("server   %s (%s, API %s) at %s\n", v.Server.Version, v.Server.GoVersion, v.Server.APIVersion, a.client.Endpoint())
			return nil
		},
	}
}
