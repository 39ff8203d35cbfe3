package protocol

// Version is the version of the protocol that an agent of this release speaks. It says so in its status. Agents of
// several versions mix in one SampleDB, so nothing is asked of one that its version does not have:
//
//	0  release 0.1.0, which says no version
//	1  the status has the version, the limits (ha.Limits), whether the volume stalls, and how far the voter had come
//	   when its agent started; a vote or a configuration with a member that is not known is refused;
//	   the name of a standby has the term in which it follows (ha.FollowerName);
//	   it can be asked for another password of a role (PathPassword), and given another program (PathProgram);
//	   it tells poolers who leads (PathPooler), and waits for them before it stops in order;
//	   a primary keeps slots for readers (Config.Readers), which an agent of version 0 would drop
//
// docs/agentupdate.md has the rules for the next one.
const Version = 1
