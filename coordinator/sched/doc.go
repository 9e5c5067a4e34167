// Package sched decides when the waiting units are tried.
//
// # Classes
//
// Units that want the same for the same owner fit or fail together: they are one
// class (Traits). A pass tries the first unit of each woken class, in the order
// of these units, until one fails. The others of its class share its Evidence
// and are not tried, so that a pass costs as many searches as there are classes
// to try, however long the queue is.
//
// # Wake-up
//
// A class that failed sleeps until an event that may help it. The
// events, and the classes that each wakes:
//
//	E1 Grew       a node has more to give, or takes work again: classes without a
//	              place, or without victims, that the node's labels allow and of
//	              which a member may fit there
//	E2 Freed      a charge to a quota tree or a namespace has ended: classes over
//	              that quota
//	   Charged    a charge to a quota tree has begun: claims, whose victims may be
//	              others then
//	   Moved      a charge has begun that moved other units of the tree: classes
//	              over that quota, which may have victims then
//	E3 Evictable  a unit can give way that could not: classes of higher priority
//	              without victims that may fit on its nodes, and claims
//	E4 Unleft     a unit that was leaving has left, or cannot, or a node has less to
//	              give on which a class counted: classes that counted on the room of
//	              units that leave, and claims
//	E5 Due        a time has come: classes over the quota of trees
//	E7 Neighbour  a unit has come to nodes, is leaving them or has left: classes
//	              without a place of its namespace whose rules about other units
//	              select the unit, or whom the unit's rules select
//	   Regrouped  nodes have come, gone or other labels: classes without a place under
//	              rules about other units
//	E8 Emptied    members of a queue have ended, or its bound was raised: classes of
//	              the queue over that bound
//	E6 Offer      the unit itself can be tried, after its own write or rest
//
// All is the event of rare changes: it wakes every class. Backstop wakes each
// class in turn; a unit that is placed only then is a missed wake-up.
//
// An Observer follows the room: the decision log verifies from the events that the
// order was kept (coordinator/decisions), by rules of its own. A change of a rule
// here changes the rule there.
//
// # Decisions
//
// World.Decide decides the outcome for one unit on a scheduling state: it starts,
// others give way for it, or it waits. The state may be the leader's or a fork of it.
// A Room charges nothing and places nothing: Pass calls the leader's Trial for each
// unit that it tries, which asks Decide and carries the decision out.
//
// Pure: no clock, no I/O, no goroutine, no log.
package sched
