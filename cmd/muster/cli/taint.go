package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
)

func (a *app) taintCommand() *cobra.Command {
	var s nodeSelection
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "taint node NAME… KEY[=VALUE]:EFFECT… KEY[:EFFECT]-…",
		Short: "Keep work off nodes that does not tolerate it",
		Long: "taint sets and removes taints of nodes. NoSchedule keeps new work away that does not tolerate the\n" +
			"taint, PreferNoSchedule places such work elsewhere first, NoExecute also ends running work with notice.",
		Example: "  muster taint node gpu-07 team=vision:NoSchedule\n  muster taint node gpu-07 team:NoSchedule-\n" +
			"  muster taint node -l rack=r1 maintenance:NoSchedule",
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := s.parse(args)
			if err != nil {
				return err
			}
			wishes, err := parseTaints(changes)
			if err != nil {
				return err
			}
			return a.edit(cmd.Context(), "taint", s, func(n *api.Node) (api.NodePatch, string, error) {
				taints, done, err := changeTaints(n.Spec.Taints, wishes, overwrite)
				if err != nil || slices.Equal(taints, n.Spec.Taints) {
					return api.NodePatch{}, "", err
				}
				return api.NodePatch{Taints: &taints}, done, nil
			})
		},
		ValidArgsFunction: a.completeTargets,
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace values that are there")
	return cmd
}

// taintWish is a taint to be set, or to be removed: of any effect where that is
// empty.
type taintWish struct {
	api.Taint
	remove bool
}

// parseTaints reads KEY=VALUE:EFFECT, KEY:EFFECT, and KEY:EFFECT- and KEY- to
// remove.
func parseTaints(changes []string) ([]taintWish, error) {
	var wishes []taintWish
	for _, c := range changes {
		w := taintWish{}
		text, removes := strings.CutSuffix(c, "-")
		w.remove = removes
		pair, effect, has := strings.Cut(text, ":")
		w.Key, w.Value, _ = strings.Cut(pair, "=")
		w.Effect = effect
		switch {
		case !api.IsLabelKey(w.Key):
			return nil, usagef("%q is not the key of a taint: want KEY[=VALUE]:NoSchedule, or KEY[:NoSchedule]- to remove it", w.Key)
		case !removes && (!has || effect == ""):
			return nil, usagef("%q has no effect: want KEY[=VALUE]:NoSchedule", c)
		case slices.ContainsFunc(wishes, func(o taintWish) bool { return o.meets(w.Taint) || w.meets(o.Taint) }):
			return nil, usagef("taint %q is given twice", w.Key)
		}
		wishes = append(wishes, w)
	}
	return wishes, nil
}

// meets reports whether a wish is about a taint.
func (w taintWish) meets(t api.Taint) bool {
	return w.Key == t.Key && (w.Effect == t.Effect || w.remove && w.Effect == "")
}

// changeTaints returns a node's taints with the wishes, in the order in which
// they were set.
func changeTaints(has []api.Taint, wishes []taintWish, overwrite bool) (taints []api.Taint, done string, err error) {
	done = "untainted"
	taints = append([]api.Taint{}, has...)
	for _, w := range wishes {
		if w.remove {
			taints = slices.DeleteFunc(taints, w.meets)
			continue
		}
		done = "tainted"
		i := slices.IndexFunc(taints, w.meets)
		switch {
		case i < 0:
			taints = append(taints, w.Taint)
		case taints[i] != w.Taint && !overwrite:
			return nil, "", fmt.Errorf("taint %s:%s has the value %q already: --overwrite replaces it", w.Key, w.Effect, taints[i].Value)
		default:
			taints[i] = w.Taint
		}
	}
	return taints, done, nil
}
