package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

func (a *app) usageCommand() *cobra.Command {
	var tenant, asked, page string
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what a tenant has used, at what peak and for what money",
		Long: "usage shows the present amounts of a tenant beside its quota, and the peak, the average and the\n" +
			"cost of a period that ends now. Without a history database the numbers are those of the present\n" +
			"leader's term, and there is no cost. Without --tenant an operator sees the tenants that have an\n" +
			"object Tenant, and the owner of the namespace (-n). With --html the numbers of one tenant become a\n" +
			"page with plots in a file that needs nothing else.",
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
	flags.StringVar(&tenant, "tenant", "", "the tenant (default: your own; for an operator those with an object, and the owner of the namespace)")
	flags.StringVar(&asked, "period", "24h", "the time that peak, average and cost are about: 1m to 366d")
	flags.StringVar(&page, "html", "", "write a page with plots into this file")
	return cmd
}

func (a *app) usage(ctx context.Context, tenant string, period time.Duration, page string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if tenant == "" {
		me, err := a.client.WhoAmI(ctx)
		if err != nil {
			return err
		}
		if tenant = me.Tenant; tenant == "" {
			return a.usageOfAll(ctx, period, page)
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

// usageOfAll shows the tenants that have an object Tenant, and the owner of the present
// namespace, in the order of their names.
func (a *app) usageOfAll(ctx context.Context, period time.Duration, page string) error {
	if page != "" {
		return usagef("--html: a page is about one tenant: name it by --tenant")
	}
	tenants, err := a.client.Tenants().List(ctx, sdk.ListOptions{})
	if err != nil {
		return err
	}
	here, err := a.ownerOf(ctx, a.namespace)
	if err != nil {
		return err
	}
	names := []string{here}
	for i := range tenants.Items {
		names = append(names, tenants.Items[i].Metadata.Name)
	}
	slices.Sort(names)
	all := []api.TenantUsage{}
	for _, name := range slices.Compact(names) {
		u, err := a.client.Metrics().Tenant(ctx, name, period)
		if err != nil {
			return err
		}
		all = append(all, *u)
	}
	return measure(ctx, a, func(context.Context) (*[]api.TenantUsage, error) { return &all, nil }, a.drawUsageOfAll)
}

// ownerOf is the tenant that owns a namespace: one without an object is owned by the tenant
// of its own name.
func (a *app) ownerOf(ctx context.Context, namespace string) (string, error) {
	n, err := a.client.Namespaces().Get(ctx, namespace)
	switch {
	case isNotFound(err):
		return namespace, nil
	case err != nil:
		return "", err
	}
	return cmp.Or(n.Spec.Tenant, namespace), nil
}

// drawUsageOfAll prints a line for each tenant and resource, and the costs.
func (a *app) drawUsageOfAll(all *[]api.TenantUsage) {
	t := newTable("TENANT", "RESOURCE", "QUOTA", "CURRENT", "PEAK", "AVERAGE", "OF-QUOTA")
	costs := newTable("TENANT", "COST")
	for _, u := range *all {
		if u.Cost != nil {
			costs.add(u.Tenant, u.Cost.Total)
		}
		for _, name := range slices.Sorted(maps.Keys(u.Resources)) {
			r, part := u.Resources[name], ""
			if r.UtilizationOfQuota != nil {
				part = percent(*r.UtilizationOfQuota)
			}
			t.add(u.Tenant, string(name), r.Quota, r.CurrentUsage, r.PeakUsage, r.AvgUsage, part)
		}
	}
	t.write(a.Stdout, "")
	if slices.ContainsFunc(*all, func(u api.TenantUsage) bool { return u.Cost != nil }) {
		a.printf("\n")
		costs.write(a.Stdout, "")
	}
}

// drawUsage prints amounts and costs as tables.
func (a *app) drawUsage(u *api.TenantUsage) {
	a.printf("tenant %s since %s\n", u.Tenant, u.Since)
	if len(u.Resources) == 0 {
		a.notef("tenant %s has no quota and has used nothing in this time; muster get tenants lists the tenants that have an object\n", u.Tenant)
		return
	}
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
