package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) usageCommand() *cobra.Command {
	var tenant, asked, page string
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what a tenant has used, at what peak and for what money",
		Long: "usage shows the present amounts of a tenant beside its quota, and the peak, the average and the\n" +
			"cost of a period that ends now. Without a history database the numbers are those of the present\n" +
			"leader's term, and there is no cost. With --html the numbers become a page with plots in a file\n" +
			"that needs nothing else.",
		Example: "  muster usage --period 30d\n  muster usage --tenant vision --period 7d -o json\n  muster usage --tenant vision --html usage.html",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			period, status := api.ParsePeriod(asked)
			if status != nil {
				return usagef("--period: %q: want a duration within 1m..366d, e.g. 24h or 30d", asked)
			}
			if tenant != "" && !api.IsSubdomain(tenant) {
				return usagef("--tenant: %q is not the name of a tenant", tenant)
			}
			if cmd.Flags().Changed("html") && page == "" {
				return usagef("--html: want the name of a file")
			}
			if err := a.connect(); err != nil {
				return err
			}
			return a.usage(cmd.Context(), tenant, period, page)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tenant, "tenant", "", "the tenant (default: your own)")
	flags.StringVar(&asked, "period", "24h", "the time that peak, average and cost are about: 1m to 366d")
	flags.StringVar(&page, "html", "", "write a page with plots into this file")
	return cmd
}

func (a *app) usage(ctx context.Context, tenant string, period time.Duration, page string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if tenant == "" {
		var err error
		if tenant, err = a.ownTenant(ctx); err != nil {
			return err
		}
	}
	ask := func(ctx context.Context) (*api.TenantUsage, error) {
		return a.client.Metrics().Tenant(ctx, tenant, period)
	}
	if page == "" {
		return measure(ctx, a, ask, a.drawUsage)
	}
	got, err := ask(ctx)
	if err != nil {
		return err
	}
	return writeUsagePage(page, got)
}

// drawUsage prints amounts and costs as tables.
func (a *app) drawUsage(u *api.TenantUsage) {
	a.printf("tenant %s since %s\n", u.Tenant, u.Since)
	t := newTable("RESOURCE", "QUOTA", "CURRENT", "PEAK", "AVERAGE", "OF-QUOTA")
	for _, name := range slices.Sorted(maps.Keys(u.Resources)) {
		r, part := u.Resources[name], ""
		if r.UtilizationOfQuota != nil {
			part = percent(*r.UtilizationOfQuota)
		}
		t.add(string(name), r.Quota, r.CurrentUsage, r.PeakUsage, r.AvgUsage, part)
	}
	t.write(a.Stdout, "")
	if u.Cost == nil {
		return
	}
	a.printf("\n")
	costs := newTable("COST", "AMOUNT")
	for _, name := range slices.Sorted(maps.Keys(u.Cost.Breakdown)) {
		costs.add(name, u.Cost.Breakdown[name])
	}
	costs.add("total", u.Cost.Total)
	costs.write(a.Stdout, "")
}
