package cli

import (
	"strconv"
	"time"

	"github.com/musterd/muster/api"
)

// This file shows priority classes.

func priorityClassRow(c *api.PriorityClass, now time.Time) (cells, wide []string) {
	s := &c.Spec
	cells = []string{c.Metadata.Name, strconv.Itoa(int(s.Value)), s.PreemptionPolicy, strconv.FormatBool(s.GlobalDefault), age(c.Metadata.CreationTimestamp, now)}
	return cells, []string{s.Description}
}

func (a *app) describePriorityClass(c *api.PriorityClass) {
	s := &c.Spec
	a.facts(append(metaFacts(&c.Metadata), "Value", strconv.Itoa(int(s.Value)), "Preemption policy", s.PreemptionPolicy,
		"Global default", strconv.FormatBool(s.GlobalDefault), "Description", s.Description)...)
}
