package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

// quotaModes are the modes as a user may write them.
var quotaModes = []string{api.ModeNormal, api.ModeMaintenance}

func (a *app) quotaModeCommand() *cobra.Command {
	var p api.QuotaModePatch
	cmd := &cobra.Command{
		Use:   "mode [Normal|Maintenance]",
		Short: "Show or change the mode of the quota trees",
		Long: "mode shows whether quota trees limit new work, or changes that. In the mode Maintenance new work\n" +
			"is charged to its own group, whatever the quota of the tree; resource quotas count as before.\n" +
			"Every answer of the API has a warning while this lasts. A change of the mode ends and moves\n" +
			"nothing: after Maintenance a group may be over its quota until enough work has ended, or until\n" +
			"muster quota reclaim.",
		Example:           "  muster quota mode Maintenance --reason \"moving groups between departments\"\n  muster quota mode Normal",
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions(quotaModes, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (p.Reason != "" || p.Metadata.ResourceVersion != "") {
				return usagef("--reason and --resource-version belong to a change: name the mode Normal or Maintenance")
			}
			if len(args) == 1 {
				var known bool
				if p.Mode, known = modeOf(args[0]); !known {
					return usagef("%q is not a mode: want %s", args[0], strings.Join(quotaModes, " or "))
				}
			}
			if err := a.connect(); err != nil {
				return err
			}
			return a.quotaMode(cmd.Context(), p)
		},
	}
	cmd.Flags().StringVar(&p.Reason, "reason", "", "the reason, for people: at most 256 bytes")
	cmd.Flags().StringVar(&p.Metadata.ResourceVersion, "resource-version", "", "change the mode only where it has this version")
	return cmd
}

// modeOf finds a mode, however its letters are written.
func modeOf(text string) (mode string, known bool) {
	for _, m := range quotaModes {
		if strings.EqualFold(m, text) {
			return m, true
		}
	}
	return "", false
}

// quotaMode shows the mode, after the change where the patch names a mode.
func (a *app) quotaMode(ctx context.Context, p api.QuotaModePatch) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got := a.client.QuotaMode
	if p.Mode != "" {
		got = func(ctx context.Context) (*api.QuotaMode, error) { return a.client.SetQuotaMode(ctx, p) }
	}
	m, err := got(ctx)
	if err != nil {
		return fmt.Errorf("quota mode %s: %w", p.Mode, err)
	}
	switch a.output {
	case "json", "yaml":
		return a.encode(m)
	case "name":
		a.printf("quotamode/%s\n", m.Mode)
		return nil
	}
	a.printf("%s\n", modeLine(m))
	return nil
}

// modeLine is "Maintenance since TIME by NAME: REASON", as far as it is known.
func modeLine(m *api.QuotaMode) string {
	line := m.Mode
	if m.Since != "" {
		line += " since " + m.Since
	}
	if m.By != "" {
		line += ", set by " + m.By
	}
	if m.Reason != "" {
		line += ": " + m.Reason
	}
	return line
}
