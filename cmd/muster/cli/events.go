package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// forObject is the object of --for; the zero value is all objects.
type forObject struct{ kind, name string }

func (f *forObject) String() string {
	if f.name == "" {
		return ""
	}
	return f.kind + "/" + f.name
}

// Type implements pflag.Value.
func (f *forObject) Type() string { return "KIND/NAME" }

// Set implements pflag.Value.
func (f *forObject) Set(text string) error {
	word, name, both := strings.Cut(text, "/")
	k, err := parseKind(word)
	switch {
	case !both:
		return errors.New("want KIND/NAME, such as job/train")
	case err != nil:
		return err
	}
	f.kind, f.name = string(k), name
	return k.checkName(name)
}

// selector adds the fields of the object to a field selector.
func (f *forObject) selector(fields string) string {
	if f.name == "" {
		return fields
	}
	return bothOf(fields, "involvedObject.kind="+kind(f.kind).client().Document+",involvedObject.name="+f.name)
}

// bothOf joins the terms of two selectors.
func bothOf(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}

// eventTypes is the value of --types: the types to show.
type eventTypes []string

func (t *eventTypes) String() string { return strings.Join(*t, ",") }

// Type implements pflag.Value.
func (t *eventTypes) Type() string { return "TYPE,…" }

// Set implements pflag.Value.
func (t *eventTypes) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc([]string{api.EventNormal, api.EventWarning}, func(known string) bool { return strings.EqualFold(known, word) })
		if i < 0 {
			return errors.New("want Normal or Warning, or both with a comma between")
		}
		*t = append(*t, []string{api.EventNormal, api.EventWarning}[i])
	}
	return nil
}

// selector adds the types to a field selector.
func (t *eventTypes) selector(fields string) string {
	if len(*t) == 0 || slices.Contains(*t, api.EventNormal) && slices.Contains(*t, api.EventWarning) {
		return fields
	}
	return bothOf(fields, "type="+(*t)[0])
}

func (a *app) eventsCommand() *cobra.Command {
	var f getFlags
	var of forObject
	var types eventTypes
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show what has happened to allocations, jobs, nodes and quotas",
		Long: "events shows the events of the last hour, the newest last. An event that has happened several times is\n" +
			"one line with its count. Each coordinator derives the events by itself and keeps them in memory: after\n" +
			"its start it has those of the time before as far as the objects still have them.\n\n" +
			"Events of nodes are in no namespace and for operators: -A shows them, and --for node/NAME.",
		Example: "  muster events\n  muster events --for job/train\n  muster events --types=Warning -A -w",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.list.FieldSelector = types.selector(of.selector(""))
			if of.kind != "" && !kind(of.kind).namespaced() {
				a.outside = true
			}
			if err := a.connect(); err != nil {
				return err
			}
			if f.watch {
				return a.watch(cmd.Context(), group{kind: eventKind}, f.list, f.watchFlags)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), listTimeout)
			defer cancel()
			return a.listGroups(ctx, []group{{kind: eventKind}}, f)
		},
	}
	flags := cmd.Flags()
	flags.Var(&of, "for", "show the events of one object, e.g. job/train")
	flags.Var(&types, "types", "show the events of these types alone: Normal, Warning")
	flags.BoolVarP(&f.watch, "watch", "w", false, "then show each event as it happens, until it is interrupted")
	flags.BoolVar(&a.noHeaders, "no-headers", false, "leave the heads of tables out")
	return cmd
}

// eventRow is an event in the columns of kubectl events.
func eventRow(e *api.Event, now time.Time) (cells, wide []string) {
	about := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
	return []string{seen(e, now), e.Type, e.Reason, about, e.Message},
		[]string{sourceOf(e), age(e.FirstTimestamp, now), strconv.Itoa(e.Count), e.Metadata.Name}
}

// seen says when an event has happened, and how often.
func seen(e *api.Event, now time.Time) string {
	last := cmp.Or(age(e.LastTimestamp, now), "unknown")
	if e.Count < 2 {
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, e.Count, age(e.FirstTimestamp, now))
}

// sourceOf is the coordinator that has derived an event.
func sourceOf(e *api.Event) string { return cmp.Or(e.Source.Host, e.Source.Component) }

func (a *app) describeEvent(e *api.Event) {
	about := e.InvolvedObject
	a.facts(append(metaFacts(&e.Metadata),
		"Object", strings.ToLower(about.Kind)+"/"+about.Name, "Object's UID", about.UID,
		"Type", e.Type, "Reason", e.Reason, "Message", e.Message,
		"Count", strconv.Itoa(e.Count), "First", e.FirstTimestamp, "Last", e.LastTimestamp, "From", sourceOf(e))...)
}

// sortByTime orders events by the time when they happened last, and events of one
// second by the store's revisions.
func sortByTime(objects []object) {
	slices.SortStableFunc(objects, func(x, y object) int {
		a, b := as[api.Event](x), as[api.Event](y)
		return cmp.Or(cmp.Compare(a.LastTimestamp, b.LastTimestamp), compareNatural(a.Metadata.ResourceVersion, b.Metadata.ResourceVersion), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
}

// eventsOf prints the events of an object as the last section of its description.
// Whoever may not read them, and a coordinator without events, gets no such section.
func (a *app) eventsOf(ctx context.Context, o object) error {
	m := o.meta()
	fields := "involvedObject.kind=" + o.Kind.Document + ",involvedObject.name=" + m.Name
	if m.UID != "" {
		fields += ",involvedObject.uid=" + m.UID
	}
	got, err := a.at(eventKind, m.Namespace).List(ctx, sdk.ListOptions{FieldSelector: fields})
	var refused *api.Status
	switch {
	case errors.As(err, &refused) && (refused.Code == http.StatusForbidden || refused.Code == http.StatusNotFound):
		return nil
	case err != nil:
		return err
	case len(got.Items) == 0 && got.Meta.Since != "":
		a.printf("\nEvents:   <none> since %s\n", got.Meta.Since)
		return nil
	}
	all := make([]object, len(got.Items))
	for i, item := range got.Items {
		all[i] = object{Object: item}
	}
	sortByTime(all)
	t := newTable("TYPE", "REASON", "AGE", "FROM", "MESSAGE")
	for _, o := range all {
		e := as[api.Event](o)
		t.add(e.Type, e.Reason, seen(e, time.Now()), sourceOf(e), e.Message)
	}
	a.section("Events", t)
	return nil
}

// hasEvents reports whether there are events of a kind.
func (k kind) hasEvents() bool {
	return slices.Contains([]kind{allocationKind, jobKind, nodeKind, resourceQuotaKind, quotaTreeKind}, k)
}
