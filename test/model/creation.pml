/* A creation that goes to the queue: one name, one client's object, Txns whose answers are lost (ADR 4).
 *
 * A leader sends "if the name is absent and tx/<guard> is absent: put the object". It may land at any later time, or
 * never; the answer may be lost. After an unknown outcome the leader fences (puts tx/<guard>), then reads the name: the
 * object is there, or it is sent anew under another guard. Once it is there the client may delete it, and others may
 * use the name and leave it. A second leader starts from what it reads, and its client asks again.
 *
 * Only the leader's key is compared besides: all of it is one step at the store. Invariants: nothing is created twice
 * (15: no ghost), what was refused never comes into being (16), what was accepted did (17).
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define IS(n) (MUTANT==n)
#define CREATE_WITHOUT_GUARD  32
#define READ_BEFORE_FENCE     33
#define CREATE_WITHOUT_EPOCH  34
#define DEPOSED_REFUSES       35

#ifndef SENDS
#define SENDS 4                 /* Txns altogether */
#endif
#ifndef NC
#define NC 2
#endif

mtype = { NONE, OURS, OTHERS };                 /* the name */
mtype = { IDLE, SENT, FENCING, FENCED, TOLD };  /* a leader */

mtype name = NONE;
byte owner;                     /* the leader whose object OURS is: each draws a uid */
byte epoch;
bool guard[SENDS];              /* tx/<guard> is there */
bool flying[SENDS];             /* a Txn that has not landed; never cleared unless it did */
byte by[SENDS];                 /* its leader */
byte next;
mtype at[NC] = IDLE;
byte mine[NC];                  /* the Txn that the leader waits for */
byte asked;                     /* the leader that the client listens to */
byte created;
bool refused;                   /* what the client heard */
bool accepted;

#define holds(i,e) assert((e) || 1000+i==0)
inline check() {
#ifdef WITNESS
  holds(99, !(created==1 && accepted && epoch==NC-1 && next==SENDS && name==OTHERS));
#endif
  holds(15, created<=1);
  holds(16, !(refused && created>0));
  holds(17, !(accepted && created==0));
}

#define FOUND(c) (name==OURS && owner==c)
#define send(c) mine[c]=next; by[next]=c; flying[next]=true; next++; at[c]=SENT
#define accept(c) at[c]=TOLD; accepted=true
#define refuse(c) at[c]=TOLD; if :: asked==c && (c==epoch || IS(DEPOSED_REFUSES)) -> refused=true :: else fi

#define store(i) \
  :: d_step { flying[i] && name==NONE && (!guard[i] || IS(CREATE_WITHOUT_GUARD)) && (by[i]==epoch || IS(CREATE_WITHOUT_EPOCH)) -> \
       flying[i]=false; name=OURS; owner=by[i]; created++ }

/* A Txn whose compares fail has landed nowhere, once and for all; its sender hears so or hears nothing. Where the
 * leader's key was what failed the sender tells its client to ask again: another leader may be at it already. */
#define leader(c) \
  :: d_step { c<=epoch && at[c]==IDLE && name==NONE && next<SENDS && !accepted && !refused -> asked=c; send(c) } \
  :: d_step { c==epoch && at[c]==IDLE && name==OURS -> accept(c) } \
  :: d_step { at[c]==SENT && !flying[mine[c]] -> accept(c) } \
  :: d_step { at[c]==SENT && flying[mine[c]] && (name!=NONE || c!=epoch) -> flying[mine[c]]=IS(CREATE_WITHOUT_EPOCH); refuse(c) } \
  :: d_step { at[c]==SENT && !IS(READ_BEFORE_FENCE) -> at[c]=FENCING }                  /* no answer */ \
  :: d_step { at[c]==SENT && IS(READ_BEFORE_FENCE) -> if :: FOUND(c) -> accept(c) :: else -> at[c]=FENCING fi } \
  :: d_step { at[c]==FENCING -> if :: c==epoch -> guard[mine[c]]=true :: else fi; at[c]=FENCED } /* a deposed leader's fails */ \
  :: d_step { at[c]==FENCED && !IS(READ_BEFORE_FENCE) && FOUND(c) -> accept(c) } \
  :: d_step { at[c]==FENCED && next<SENDS && (!FOUND(c) || IS(READ_BEFORE_FENCE)) -> send(c) }

active proctype World() {
end:
  do :: atomic { if
  store(0) store(1) store(2) store(3)
  leader(0)
#if NC > 1
  :: d_step { epoch<NC-1 -> epoch++ }
  leader(1)
#endif
  :: d_step { name==NONE -> name=OTHERS }
  :: d_step { name==OTHERS -> name=NONE }
  :: d_step { name==OURS && accepted -> name=NONE }               /* deleted by its client */
  fi; d_step { check() } }
  od
}
