package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) labelCommand() *cobra.Command {
	var s nodeSelection
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "label node|allocation|job NAME… KEY=VALUE… KEY-…",
		Short: "Set and remove labels of nodes, allocations and jobs",
		Long: "label sets the operators' labels of nodes, by which requests select nodes. They cover those of the\n" +
			"agent's file: KEY- removes the operators' label, and shows the agent's again where it has one.\n" +
			"kubernetes.io/hostname, muster.*/* and nvidia.com/* follow from a node's registration.\n\n" +
			"The labels of allocations and jobs are their owner's. Members of a job have the job's labels.",
		Example: "  muster label node gpu-07 zone=a rack=r1\n  muster label node gpu-07 zone=b --overwrite\n" +
			"  muster label node -l rack=r1 pool-\n  muster label nodes --all site=north\n" +
			"  muster label job train team=vision -n ml",
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if namesWork(args) {
				return a.changeWork(cmd.Context(), args, s, workEdit{verb: "label", done: "labeled", field: "labels", wish: pairs{what: "label"}, overwrite: overwrite})
			}
			changes, err := s.parse(args)
			if err != nil {
				return err
			}
			wish, err := parsePairs("label", changes)
			if err != nil {
				return err
			}
			for _, key := range slices.Sorted(maps.Keys(wish.set)) {
				if api.ReservedLabel(key) {
					return usagef("label %q is reserved: kubernetes.io/hostname, muster.*/* and nvidia.com/* follow from a node's registration", key)
				}
			}
			return a.edit(cmd.Context(), "label", s, func(n *api.Node) (api.NodePatch, string, error) {
				set, done, err := wish.change(n.Metadata.Labels, n.Status.OperatorLabels, overwrite)
				return api.NodePatch{Labels: api.MapPatch{Set: set}}, done + "labeled", err
			})
		},
		ValidArgsFunction: a.completeTargets,
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace values that are there")
	return cmd
}

func (a *app) annotateCommand() *cobra.Command {
	var s nodeSelection
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "annotate node|allocation|job NAME… KEY=VALUE… KEY-…",
		Short: "Set and remove annotations of nodes, allocations and jobs",
		Long:  "annotate keeps notes with nodes, allocations and jobs, for people and programs. Nothing is decided by them.",
		Example: "  muster annotate node gpu-07 owner=team-vision ticket=HW-1234\n" +
			"  muster annotate node gpu-07 ticket-\n  muster annotate allocation web note=keep -n ml",
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if namesWork(args) {
				return a.changeWork(cmd.Context(), args, s, workEdit{verb: "annotate", done: "annotated", field: "annotations", wish: pairs{what: "annotation"}, overwrite: overwrite})
			}
			changes, err := s.parse(args)
			if err != nil {
				return err
			}
			wish, err := parsePairs("annotation", changes)
			if err != nil {
				return err
			}
			return a.edit(cmd.Context(), "annotate", s, func(n *api.Node) (api.NodePatch, string, error) {
				set, done, err := wish.change(n.Metadata.Annotations, n.Metadata.Annotations, overwrite)
				return api.NodePatch{Annotations: api.MapPatch{Set: set}}, done + "annotated", err
			})
		},
		ValidArgsFunction: a.completeTargets,
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace values that are there")
	return cmd
}

// pairs are labels or annotations to be set, or removed where the value is nil.
type pairs struct {
	what string
	set  map[string]*string
}

// parsePairs reads KEY=VALUE and KEY-.
func parsePairs(what string, changes []string) (pairs, error) {
	p := pairs{what: what, set: map[string]*string{}}
	for _, c := range changes {
		key, value, sets := strings.Cut(c, "=")
		if !sets {
			key = strings.TrimSuffix(c, "-")
		}
		if !api.IsLabelKey(key) {
			return p, usagef("%q is not the key of a %s: want KEY=VALUE or KEY-", key, what)
		}
		if _, twice := p.set[key]; twice {
			return p, usagef("%s %q is given twice", what, key)
		}
		p.set[key] = nil
		if sets {
			p.set[key] = &value
		}
	}
	return p, nil
}

// change returns the part of the wish that a node lacks. shown are the node's
// pairs, own those among them that operators have set. The prefix is "un" where
// pairs are only removed.
func (p pairs) change(shown, own map[string]string, overwrite bool) (set map[string]*string, prefix string, err error) {
	prefix = "un"
	for _, key := range slices.Sorted(maps.Keys(p.set)) {
		value := p.set[key]
		has, is := shown[key]
		mine, isOwn := own[key]
		switch {
		case value == nil && !is, value != nil && isOwn && mine == *value:
			continue
		case value == nil && !isOwn:
			return nil, "", fmt.Errorf("%s %q is not an operator's: it is the agent's, or follows from its registration; set another value to cover the agent's", p.what, key)
		case value != nil && is && has != *value && !overwrite:
			return nil, "", fmt.Errorf("%s %q has the value %q already: --overwrite replaces it", p.what, key, has)
		}
		if set == nil {
			set = map[string]*string{}
		}
		if set[key] = value; value != nil {
			prefix = ""
		}
	}
	return set, prefix, nil
}
