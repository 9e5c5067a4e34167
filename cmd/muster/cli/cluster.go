package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func clusterCommand(a *app) *cobra.Command {
	return parent(&cobra.Command{Use: "cluster", Short: "Show and change the whole cluster"}, clusterLevelCommand(a))
}

func clusterLevelCommand(a *app) *cobra.Command {
	raise := false
	cmd := &cobra.Command{
		Use:   "level",
		Short: "Show or raise the feature level",
		Long: "level shows the feature level of the cluster, the newest level of the coordinator, and the\n" +
			"coordinators and nodes below the newest level. --raise raises the level to the newest, once all\n" +
			"know it. Nothing lowers the level: coordinators of an older version cannot come back afterwards.",
		Example: "  muster cluster level\n  muster cluster level --raise",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.connect(); err != nil {
				return err
			}
			return clusterLevel(cmd.Context(), a, raise)
		},
	}
	cmd.Flags().BoolVar(&raise, "raise", false, "raise the level to the newest")
	return cmd
}

func clusterLevel(ctx context.Context, a *app, raise bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l, err := a.client.FeatureLevel(ctx)
	if err == nil && raise && l.Level < l.Newest {
		l, err = a.client.RaiseFeatureLevel(ctx, api.FeatureLevelPatch{Level: l.Newest})
	}
	if err != nil {
		return fmt.Errorf("cluster level: %w", err)
	}
	switch a.output {
	case "json", "yaml":
		return a.encode(l)
	case "name":
		a.printf("featurelevel/%d\n", l.Level)
		return nil
	}
	a.printf("Feature level %d of %d\n", l.Level, l.Newest)
	for _, f := range l.Features {
		state := "off"
		if f.Level <= l.Level {
			state = "on"
		}
		a.printf("%d: %s, %s\n", f.Level, f.Name, state)
	}
	if len(l.Behind) > 0 {
		t := newTable("BEHIND", "NAME", "KNOWS")
		for _, b := range l.Behind {
			t.add(b.Kind, b.Name, strconv.Itoa(b.Level))
		}
		t.write(a.Stdout, "")
	}
	return nil
}
