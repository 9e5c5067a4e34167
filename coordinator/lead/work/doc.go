// Package work keeps the work of a term: units with their jobs, groups, members and attempts,
// and the register of all of them. Package work decides the order of a unit's steps and answers
// questions about the work; the leader decides the time of each step. Fields are written here
// alone.
//
//   - register: all the work, by name; dependents: jobs that wait for jobs; queue_news; census.
//   - unit and unit_new (parts of the unit), unit_phase and life, phase (steps), unit_charge,
//     wait, told and fate (why a unit waits), unit_form, unit_facts and unit_shown (questions).
//   - attempt (a transaction for a unit), attempt_facts, attempt_work; company, loss, mend, end.
//   - job, job_life, time_limit; group, joining.
package work
