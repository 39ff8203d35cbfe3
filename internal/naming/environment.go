package naming

// The variables of the environment that tell a program of a Pod what it must know from the first moment on.

// EnvUpgraded tells an agent the id of the upgrade whose data it must have.
const EnvUpgraded = "TOBAN_UPGRADED"

// EnvRestored tells an agent the id of the restore in place whose data it must have.
const EnvRestored = "TOBAN_RESTORED"

// EnvSurvivor tells an agent the instance that goes on with its own data as that of EnvRestored, "" for none.
const EnvSurvivor = "TOBAN_SURVIVOR"
