package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// mostAudit bounds the entries that the server gives at a time.
const mostAudit = 1000

func (a *app) auditCommand() *cobra.Command {
	var o sdk.AuditOptions
	var of auditedObject
	var since, until time.Duration
	var watch bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the changes that persons have made, and the requests that were refused",
		Long: "audit shows entries of the last 25 hours, the newest last. Changes are in the store, so every\n" +
			"coordinator shows the same; a refused request is shown by the coordinator that has refused it.\n" +
			"Admins see all entries, a tenant-admin those of the own tenant. With -w the command goes on with\n" +
			"each further entry, until it is interrupted or the token is revoked.",
		Example: "  muster audit --for job/train -n vision\n  muster audit --person ada@example.org --since 3h --until 1h\n  muster audit --for tokens\n  muster audit --result refused --limit 500 -o json\n  muster audit -w --person ada@example.org",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Flags()
			switch {
			case flags.Changed("person") && strings.TrimSpace(o.Person) == "":
				return usagef("--person: %q is no name of a user", o.Person)
			case flags.Changed("since") && since <= 0:
				return usagef("--since: %s: want a duration such as 1h", since)
			case flags.Changed("until") && (until <= 0 || since > 0 && until >= since):
				return usagef("--until: %s: want a duration such as 30m, shorter than --since", until)
			case flags.Changed("until") && watch:
				return usagef("--until and --watch exclude each other: further entries are newer")
			case o.Limit < 1 || o.Limit > mostAudit:
				return usagef("--limit: %d is outside 1..%d", o.Limit, mostAudit)
			case o.Result != "" && o.Result != api.AuditDone && o.Result != api.AuditRefused:
				return usagef("--result: %q: want %s or %s", o.Result, api.AuditDone, api.AuditRefused)
			}
			if since > 0 {
				o.Since = time.Now().Add(-since)
			}
			if until > 0 {
				o.Until = time.Now().Add(-until)
			}
			if err := a.connect(); err != nil {
				return err
			}
			o.Resource, o.Name = of.resource, of.name
			if flags.Changed("namespace") || of.namespaced && of.name != "" {
				o.Namespace = a.namespace
			}
			if watch {
				return a.followAudit(cmd.Context(), o)
			}
			return a.audit(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.Var(&of, "for", "show the requests about one object, e.g. job/train or token/at-5d1f09c2ab, or about a kind, e.g. tokens")
	flags.StringVar(&o.Person, "person", "", "show the requests of this user")
	flags.StringVar(&o.Result, "result", "", "show changes (done), or refused requests (refused)")
	_ = cmd.RegisterFlagCompletionFunc("result", cobra.FixedCompletions([]string{api.AuditDone, api.AuditRefused}, cobra.ShellCompDirectiveNoFileComp))
	flags.DurationVar(&since, "since", 0, "show the entries of this last time, e.g. 1h")
	flags.DurationVar(&until, "until", 0, "leave out the entries of this last time, e.g. 30m")
	flags.IntVar(&o.Limit, "limit", 100, "how many entries to show, 1 to 1000")
	flags.BoolVarP(&watch, "watch", "w", false, "go on with each further entry")
	flags.BoolVar(&a.noHeaders, "no-headers", false, "leave the heads of tables out")
	return cmd
}

// audit prints entries, the newest last.
func (a *app) audit(ctx context.Context, o sdk.AuditOptions) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := &api.AuditEntryList{Kind: api.KindAuditEntry + "List", Items: []api.AuditEntry{}}
	for {
		page := o
		page.Limit = o.Limit - len(list.Items)
		got, err := a.client.Audit(ctx, page)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, got.Items...)
		if o.Continue = got.Metadata.Continue; o.Continue == "" || len(list.Items) >= o.Limit {
			break
		}
	}
	slices.Reverse(list.Items)
	if a.output == "json" || a.output == "yaml" {
		return a.encode(list)
	}
	if a.output == "name" {
		for i := range list.Items {
			a.printf("%s\n", list.Items[i].ID)
		}
		return nil
	}
	t := a.auditTable()
	for i := range list.Items {
		t.add(a.auditRow(&list.Items[i])...)
	}
	t.write(a.Stdout, "")
	return nil
}

// followAudit prints entries, and each further one, until it is interrupted.
func (a *app) followAudit(ctx context.Context, o sdk.AuditOptions) error {
	var widths []int
	t, begun := a.auditTable(), false
	for e, err := range a.client.FollowAudit(ctx, o) {
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // interrupted, which is how a watch ends
		case err != nil:
			return err
		case a.output == "name":
			a.printf("%s\n", e.ID)
		case a.isTable():
			t.add(a.auditRow(e)...)
			widths = t.writeWide(a.Stdout, "", widths)
			t = &table{}
		default:
			if a.output == "yaml" && begun {
				a.printf("---\n")
			}
			if err := a.encode(e); err != nil {
				return err
			}
		}
		begun = true
		if _, broken := unwritten(a.Stdout); broken {
			return nil
		}
	}
	return nil
}

// auditTable is a table with the heads of entries alone.
func (a *app) auditTable() *table {
	switch {
	case a.noHeaders:
		return &table{}
	case a.output == "wide":
		return newTable("TIME", "PERSON", "VERB", "OBJECT", "RESULT", "ADDRESS", "REASON", "TOKEN", "TENANT", "VIA", "COORDINATOR", "REQUEST")
	}
	return newTable("TIME", "PERSON", "VERB", "OBJECT", "RESULT", "ADDRESS", "REASON")
}

func (a *app) auditRow(e *api.AuditEntry) []string {
	row := []string{e.Time, cmp.Or(e.Person, "unknown"), e.Verb, auditObject(e), auditResult(e), e.Address, e.Reason}
	if a.output == "wide" {
		row = append(row, e.Token, e.Tenant, e.Via, e.Coordinator, e.RequestID)
	}
	return row
}

// auditObject is "allocations vision/train", without the parts that an entry lacks.
func auditObject(e *api.AuditEntry) string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + cmp.Or(e.Name, "*")
	}
	return strings.TrimSpace(e.Resource + " " + name)
}

func auditResult(e *api.AuditEntry) string {
	if e.Code == 0 {
		return e.Result
	}
	return e.Result + " " + strconv.Itoa(e.Code)
}
