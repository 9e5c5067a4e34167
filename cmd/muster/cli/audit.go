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
	var of forObject
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the changes that persons have made, and the requests that were refused",
		Long: "audit shows entries of the last 25 hours, the newest last. Changes are in the store, so every\n" +
			"coordinator shows the same; a refused request is shown by the coordinator that has refused it.\n" +
			"Admins see all entries, a tenant-admin those of the own tenant.",
		Example: "  muster audit --for job/train -n vision\n  muster audit --person ada@example.org --since 1h\n  muster audit --result refused --limit 500 -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Flags()
			switch {
			case flags.Changed("person") && strings.TrimSpace(o.Person) == "":
				return usagef("--person: %q is no name of a user", o.Person)
			case flags.Changed("since") && since <= 0:
				return usagef("--since: %s: want a duration such as 1h", since)
			case o.Limit < 1 || o.Limit > mostAudit:
				return usagef("--limit: %d is outside 1..%d", o.Limit, mostAudit)
			case o.Result != "" && o.Result != api.AuditDone && o.Result != api.AuditRefused:
				return usagef("--result: %q: want %s or %s", o.Result, api.AuditDone, api.AuditRefused)
			}
			if since > 0 {
				o.Since = time.Now().Add(-since)
			}
			if err := a.connect(); err != nil {
				return err
			}
			if of.kind != "" {
				o.Resource, o.Name = of.kind+"s", of.name
			}
			if flags.Changed("namespace") || of.kind != "" && kind(of.kind).namespaced() {
				o.Namespace = a.namespace
			}
			return a.audit(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.Var(&of, "for", "show the changes of one object, e.g. job/train")
	flags.StringVar(&o.Person, "person", "", "show the requests of this user")
	flags.StringVar(&o.Result, "result", "", "show changes (done), or refused requests (refused)")
	_ = cmd.RegisterFlagCompletionFunc("result", cobra.FixedCompletions([]string{api.AuditDone, api.AuditRefused}, cobra.ShellCompDirectiveNoFileComp))
	flags.DurationVar(&since, "since", 0, "show the entries of this last time, e.g. 1h")
	flags.IntVar(&o.Limit, "limit", 100, "how many entries to show, 1 to 1000")
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
	t := newTable("TIME", "PERSON", "VERB", "OBJECT", "RESULT", "ADDRESS", "REASON")
	if a.output == "wide" {
		t = newTable("TIME", "PERSON", "VERB", "OBJECT", "RESULT", "ADDRESS", "REASON", "TOKEN", "TENANT", "VIA", "COORDINATOR", "REQUEST")
	}
	if a.noHeaders {
		t = &table{}
	}
	for i := range list.Items {
		e := &list.Items[i]
		if a.output == "name" {
			a.printf("%s\n", e.ID)
			continue
		}
		row := []string{e.Time, cmp.Or(e.Person, "unknown"), e.Verb, auditObject(e), auditResult(e), e.Address, e.Reason}
		if a.output == "wide" {
			row = append(row, e.Token, e.Tenant, e.Via, e.Coordinator, e.RequestID)
		}
		t.add(row...)
	}
	if a.isTable() {
		t.write(a.Stdout, "")
	}
	return nil
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
