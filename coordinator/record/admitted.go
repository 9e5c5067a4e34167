package record

// Admitted are the values that work got at its submission where its document leaves them
// out. They never change: a later change of a priority class changes no work.
type Admitted struct {
	// Priority is the value of the class; nil where the document has a number, or names
	// no class but one that is built in.
	Priority *int32 `json:"priority,omitempty"`
	// PriorityClass is the class of work that names none; "" where no class is the default.
	PriorityClass string `json:"priorityClass,omitempty"`
	// PreemptionPolicy is that of the class; an older version has written the default, too.
	PreemptionPolicy string `json:"preemptionPolicy,omitempty"`
}

// Fill completes the fields of a document that it leaves out. A nil Admitted leaves them as
// they are.
func (a *Admitted) Fill(number **int32, class, policy *string) {
	if a == nil {
		return
	}
	if *number == nil {
		*number = a.Priority
	}
	if *class == "" {
		*class = a.PriorityClass
	}
	if *policy == "" {
		*policy = a.PreemptionPolicy
	}
}
