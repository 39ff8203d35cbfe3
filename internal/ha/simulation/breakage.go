package simulation

// Breakage is a step that is left out or done wrongly, to see that the
// invariants notice.
type Breakage string

// The breakages.
const (
	Whole                Breakage = ""
	NoRevocation         Breakage = "a vote does not end the stream"
	PromiseNotDurable    Breakage = "a promise is not kept"
	VoteTwice            Breakage = "a vote is given twice in a term"
	PositionIgnored      Breakage = "a vote is given whatever the candidate's position"
	TermlessPosition     Breakage = "positions are compared without their terms"
	TermForgotten        Breakage = "the ballot is forgotten at a restart"
	VoterKept            Breakage = "an instance that lost its volume votes as before"
	ShrinkUnrecorded     Breakage = "the next quorum is in force before anybody has it on record"
	RuleTooEarly         Breakage = "the rule of the next quorum alone holds before both are recorded"
	NoBarrier            Breakage = "a configuration is made before the WAL meets the rule of both"
	NotSuperseded        Breakage = "a primary ignores a later term"
	CloneFromOld         Breakage = "data is copied from a primary of an older term"
	StrangersCount       Breakage = "acknowledgements of those that are no voters count"
	NoConfirmation       Breakage = "a leader that comes back does not ask whether it still is"
	NoCompare            Breakage = "the witness is written without comparing"
	PromoteBeforeStop    Breakage = "a primary resigns before it has stopped"
	NoJoinCheck          Breakage = "a standby follows without comparing term histories"
	TermHistoryNotStored Breakage = "a standby receives before it has the leader's term history"
	LateCommand          Breakage = "a command is carried out though a fence has ended it"
	WinsAfterPromise     Breakage = "a candidate wins though it has promised a later term"
	RenewInPlace         Breakage = "a leader takes a later term as primary, though others have a vote"
	NoFence              Breakage = "an isolated primary goes on"
	OpensUnproven        Breakage = "a leader that comes back opens its server before its WAL is proven"
	OpensUnasked         Breakage = "a leader that comes back opens its server without asking again"
	PreemptsUnasked      Breakage = "who is elected does not ask who has the read lease"
	DiscardsFirst        Breakage = "data is given up before the copy has begun"
	KilledTooEarly       Breakage = "a fence is taken for done while the server still answers"
	CountsUnheard        Breakage = "an instance gets a vote though the leader has not heard it"
	DiscardsUnasked      Breakage = "data is given up for a copy though others need it"
)
