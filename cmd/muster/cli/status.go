package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the coordinators: who leads, since when, and how far the others are behind",
		Long: "status asks one coordinator for all of them. BEHIND is by how many revisions of the store a\n" +
			"coordinator's view is older than the newest; what it answers is up to date all the same.",
		Example: "  muster status\n  muster status --addr head-1:8470,head-2:8470 -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			got, err := a.client.Coordinators(ctx)
			if err != nil {
				return err
			}
			switch a.output {
			case "json", "yaml":
				return a.encode(got)
			case "name":
				for _, c := range got.Items {
					a.printf("coordinator/%s\n", c.ID)
				}
				return nil
			}
			coordinatorTable(got.Items).write(a.Stdout, "")
			return nil
		},
	}
}

func coordinatorTable(items []api.Coordinator) *table {
	t := newTable("COORDINATOR", "ROLE", "EPOCH", "SINCE", "REVISION", "BEHIND", "REST", "MESSAGE")
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	for _, c := range items {
		epoch, behind, role := "", "", c.Role
		if c.Role == api.LeaderRole {
			epoch = number(c.Epoch)
		}
		if c.Revision > 0 {
			behind = strconv.FormatInt(c.Behind, 10)
		}
		if role == "" {
			role = "unknown"
		}
		t.add(c.ID, role, epoch, c.Since, number(c.Revision), behind, c.REST, c.Message)
	}
	return t
}
