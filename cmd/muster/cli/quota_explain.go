package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/resource"
)

func (a *app) quotaExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain CONSUMER",
		Short: "Say where an allocation or a job stands on the quota trees",
		Long: "explain says on which node of each tree something is counted, from whom it borrows, and whose work\n" +
			"may claim that back; where quota is why it is not charged, what is short. It takes NAMESPACE/NAME,\n" +
			"or NAME of the namespace of -n.",
		Example: "  muster quota explain ml/train\n  muster quota explain train -n ml -o json",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.allNamespaces {
				return usagef("-A: the question is about one object; name its namespace")
			}
			namespace, name := consumerName(args[0])
			if namespace != "" && !api.IsLabel(namespace) || !api.IsSubdomain(name) {
				return usagef("%q is not NAMESPACE/NAME or NAME", args[0])
			}
			if err := a.connect(); err != nil {
				return err
			}
			switch {
			case namespace == "":
				namespace = a.namespace
			case a.namespaceGiven && namespace != a.namespace:
				return usagef("%q is in another namespace than %q of -n", args[0], a.namespace)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			explanation, err := a.client.ExplainQuota(ctx, namespace, name)
			if isNotFound(err) {
				return fmt.Errorf("there is no job or allocation %q in namespace %q; muster get jobs -A shows all jobs", name, namespace)
			}
			if err != nil {
				return err
			}
			switch a.output {
			case "json", "yaml":
				return a.encode(explanation)
			case "name":
				a.printf("%s\n", explanation.Consumer)
			default:
				a.printQuotaExplanation(explanation)
			}
			return nil
		},
		ValidArgsFunction: a.completeConsumers,
	}
}

// consumerName reads NAMESPACE/NAME, NAME, or a unit as pictures name it:
// NAMESPACE/alloc/NAME/0, NAMESPACE/job/NAME/0.
func consumerName(arg string) (namespace, name string) {
	parts := strings.Split(arg, "/")
	switch {
	case len(parts) == 1:
		return "", arg
	case len(parts) == 4 && (parts[1] == "alloc" || parts[1] == "job"):
		return parts[0], parts[2]
	}
	namespace, name, _ = strings.Cut(arg, "/")
	return namespace, name
}

// completeConsumers offers jobs and allocations.
func (a *app) completeConsumers(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	jobs, directive := a.completeNames(jobKind)(cmd, args, prefix)
	allocations, _ := a.completeNames(allocationKind)(cmd, args, prefix)
	return append(jobs, allocations...), directive
}

// printQuotaExplanation prints where a unit is counted.
func (a *app) printQuotaExplanation(q *api.QuotaExplanation) {
	a.printf("%s: %s\n%s\n", q.Consumer, q.Phase, q.Summary)
	a.printPlacements(q.Placements, "", len(q.Reasons) > 0)
	a.limits(q.Reasons, q.Summary)
}

// printPlacements prints a paragraph per tree and place; the units of a job that
// stand at the same place share one. would is "would be " where they only may come to
// stand there; waiting says that they are not charged because quota is short.
func (a *app) printPlacements(placements []api.QuotaPlacement, would string, waiting bool) {
	type place struct{ tree, words string }
	var places []place
	units := map[place]int{}
	for i := range placements {
		p := place{placements[i].Tree, strings.Join(placementLines(&placements[i], would, waiting), "\n  ")}
		if units[p]++; units[p] == 1 {
			places = append(places, p)
		}
	}
	s := a.style()
	for _, p := range places {
		head := "On tree " + p.tree
		if n := units[p]; n > 1 {
			head += fmt.Sprintf(", %d units, each", n)
		}
		a.printf("\n%s\n  %s\n", s.paint(bold, head+":"), p.words)
	}
}

// placementLines words a unit's place on one tree.
func placementLines(q *api.QuotaPlacement, would string, waiting bool) []string {
	kept := ""
	if q.Unpreemptable {
		kept = ", never evicted"
	}
	lines := []string{fmt.Sprintf("group %s, asks for %s, priority %d%s", q.Group, amounts(q.Request), q.Priority, kept)}
	switch q.Node {
	case "":
		if waiting {
			return append(lines, "not charged: quota is short")
		}
		return append(lines, "not charged")
	case q.Group:
		return append(lines, would+"counted on its own group: it borrows from nobody, and nobody may claim it back")
	}
	line := fmt.Sprintf("%scounted on %s, above its group: it borrows", would, q.Node)
	if len(q.BorrowsFrom) > 0 {
		line += " from " + strings.Join(q.BorrowsFrom, ", ")
	}
	lines = append(lines, line)
	if len(q.ReclaimableBy) == 0 {
		return append(lines, "nobody has unused quota with which to claim it back now")
	}
	return append(lines, "may be claimed back by work in "+strings.Join(q.ReclaimableBy, ", "))
}

// limits words the shortages, each with its numbers, unless all of them
// were shown.
func (a *app) limits(reasons []resource.Reason, said string) {
	if !slices.ContainsFunc(reasons, func(r resource.Reason) bool { return !strings.Contains(said, reasonWords(r)) }) {
		return
	}
	a.printf("\nShort of quota:\n")
	for _, r := range reasons {
		a.printf("  %s\n", reasonWords(r))
	}
}

// reasonWords is a reason's sentence, where it has one.
func reasonWords(r resource.Reason) string {
	if r.Detail != "" {
		return r.Detail
	}
	return r.String()
}

func (a *app) quotaWhatIfCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "what-if -f FILE",
		Short: "Ask what quota would say of a consumer now, without effect",
		Long: "what-if tries a document of kind Consumer (spec.id, spec.trees[]: treeName, groupID, request,\n" +
			"priority, type, unPreemptable) on the trees as they are, and takes the try back. It says where\n" +
			"the consumer would be counted, who would have to end for it and who would be moved. The exit\n" +
			"code is 1 where it would not be admitted.",
		Example: "  muster quota what-if -f examples/quota-consumer.json\n  generate | muster quota what-if -f - -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("name a file with -f, or -f - for standard input")
			}
			if err := a.connect(); err != nil {
				return err
			}
			name, doc, err := a.consumer(file)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			dryRun, err := a.client.TryQuota(ctx, doc)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return a.printQuotaDryRun(dryRun)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the consumer, JSON or YAML, - for standard input")
	return cmd
}

// consumer reads and checks the one consumer of a file, as JSON.
func (a *app) consumer(file string) (name string, doc []byte, err error) {
	name, raw, err := a.contents(file)
	if err != nil {
		return name, nil, err
	}
	documents, err := split(raw)
	if err != nil {
		return name, nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(documents) != 1 {
		return name, nil, fmt.Errorf("%s: %d documents, want 1 of kind Consumer", name, len(documents))
	}
	_, warnings, err := quotajson.Consumer(documents[0], quotajson.Natural)
	if err != nil {
		return name, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, w := range warnings {
		a.notef("warning: %s: %s\n", name, w)
	}
	return name, documents[0], nil
}

// errNotAdmitted ends what-if with exit code 1; the answer is printed before.
var errNotAdmitted = errors.New("not admitted")

// printQuotaDryRun prints the answer to "what if".
func (a *app) printQuotaDryRun(q *api.QuotaDryRun) error {
	admitted := q.Admitted && len(q.Victims) == 0 // no work is evicted yet
	switch a.output {
	case "json", "yaml":
		if err := a.encode(q); err != nil {
			return err
		}
	case "name":
	default:
		a.printf("%s\n", q.Summary)
		a.printPlacements(q.Placements, "would be ", !admitted)
		if len(q.Victims) > 0 {
			a.printf("\nwould have to end for it: %s\n", strings.Join(q.Victims, ", "))
		}
		if len(q.Moved) > 0 {
			a.printf("\nwould be counted on other nodes: %s\n", strings.Join(q.Moved, ", "))
		}
		a.limits(q.Reasons, q.Summary)
	}
	if !admitted {
		return errNotAdmitted
	}
	return nil
}
