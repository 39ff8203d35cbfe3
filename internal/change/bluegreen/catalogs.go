package bluegreen

// Treatment is what becomes of a sort of objects when sides change.
type Treatment string

// The treatments. All definitions that there are come with the copy. Compared says that both sides are looked at before
// each comparison of rows and before each change of sides, ComparedInPause that it is done in the pause too.
const (
	Compared           Treatment = "compared"
	ComparedInPause    Treatment = "compared, also in the pause"
	Refused            Treatment = "refused"
	SameByConstruction Treatment = "the same by construction"
	OfEachSide         Treatment = "of each side"
)

// Catalog is one of PostgreSQL's system catalogs.
type Catalog struct {
	Name      string
	Treatment Treatment
	// Why is a sentence for docs/bluegreencatalog.md.
	Why string
}

// Catalogs are all system catalogs of PostgreSQL 16 to 19. A test looks into pg_catalog of real servers, so that none
// that a version adds is forgotten.
var Catalogs = []Catalog{
	{"pg_aggregate", Compared, "What each aggregate computes with."},
	{"pg_am", Compared, "Access methods, with their handlers."},
	{"pg_amop", Compared, "Operators in families, also those that a user has added to one of PostgreSQL's own."},
	{"pg_amproc", Compared, "Functions in families, as with `pg_amop`."},
	{"pg_attrdef", Compared,
		"That a column has a default or is generated; the expression where both sides are of one version."},
	{"pg_attribute", Compared, "Columns: type, NOT NULL, identity, collation, storage, options, rights."},
	{"pg_auth_members", ComparedInPause,
		"Memberships, with who has granted them, but for those that PostgreSQL has itself."},
	{"pg_authid", ComparedInPause,
		"Roles with their passwords, which are carried before: each role may change its own at any time."},
	{"pg_cast", Compared, "Casts, with their functions."},
	{"pg_class", Compared,
		"Tables, views, sequences and partitions: owner, rights, row security, options, tablespace. Rows of " +
			"tables are carried and compared; unlogged ones are refused."},
	{"pg_collation", Compared,
		"Collations, but for the version of their rules, which is that of each side's libraries."},
	{"pg_constraint", Compared,
		"Constraints; that a column is NOT NULL counts with `pg_attribute`, because PostgreSQL 18 alone has a " +
			"constraint for it."},
	{"pg_conversion", Compared, "Conversions of encodings."},
	{"pg_database", ComparedInPause,
		"Databases: owner, rights, encoding, locale, tablespace, limit of connections. Templates other than " +
			"PostgreSQL's own, and closed ones, are refused."},
	{"pg_db_role_setting", ComparedInPause, "Settings of roles and databases."},
	{"pg_default_acl", Compared, "Default privileges."},
	{"pg_depend", SameByConstruction,
		"Follows from the definitions of the objects, each of which is looked at, but for `DEPENDS ON EXTENSION` " +
			"and for what belongs to an extension, which come with the copy and are compared nowhere."},
	{"pg_description", Compared,
		"Comments, but for those that somebody has written on PostgreSQL's own objects: no upgrade brings " +
			"these along."},
	{"pg_enum", Compared, "Values of enums in their order, with `pg_type`."},
	{"pg_event_trigger", Compared,
		"Event triggers. No event trigger notices a change of one, so nothing else would tell of it."},
	{"pg_extension", Compared,
		"Extensions with schema, and with owner where both sides are of one version, because an upgrade does not " +
			"keep it. The version and what belongs to one may be newer on the other side; some are refused " +
			"(`OwnState`)."},
	{"pg_foreign_data_wrapper", Compared, "Wrappers, with their options."},
	{"pg_foreign_server", Compared, "Servers, with their options."},
	{"pg_foreign_table", Compared, "Of which server, and the options. The rows are elsewhere."},
	{"pg_index", Compared,
		"Indexes that are valid: an upgrade leaves others behind. By which one a table was last clustered is " +
			"left out."},
	{"pg_inherits", Compared, "Parents and partitions, with `pg_class`."},
	{"pg_init_privs", SameByConstruction,
		"What rights PostgreSQL and extensions give at first: an upgrade keeps those of extensions. Rights to " +
			"PostgreSQL's own objects are compared with them, and rights to what belongs to an extension are " +
			"compared nowhere, but for the language `plpgsql`."},
	{"pg_language", Compared, "Languages, with their handlers."},
	{"pg_largeobject", Refused, "Large objects are in no table that can be published (`LargeObjects`)."},
	{"pg_largeobject_metadata", Refused, "Refused with `pg_largeobject`."},
	{"pg_namespace", Compared,
		"Schemas: owner and rights. What users have in `pg_catalog` and `information_schema` is refused, " +
			"because an upgrade leaves it behind (`SystemSchemas`)."},
	{"pg_opclass", Compared, "Operator classes."},
	{"pg_operator", Compared, "Operators."},
	{"pg_opfamily", Compared, "Operator families."},
	{"pg_parameter_acl", ComparedInPause, "Rights to parameters."},
	{"pg_partitioned_table", Compared,
		"That a table is partitioned, with `pg_class`; by what, where both sides are of one version."},
	{"pg_policy", Compared,
		"Policies of row security: for which command and roles; the expression where both sides are of one " +
			"version."},
	{"pg_proc", Compared,
		"Functions and procedures: owner, rights, language, source, settings. A body in standard SQL counts " +
			"where both sides are of one version."},
	{"pg_publication", Compared,
		"Publications of users. Who reads one needs a slot, and slots of others are refused (`LogicalSlots`)."},
	{"pg_publication_namespace", Compared, "With `pg_publication`."},
	{"pg_publication_rel", Compared, "With `pg_publication`; filters of rows where both sides are of one version."},
	{"pg_range", Compared, "With `pg_type`."},
	{"pg_replication_origin", Refused,
		"Origins of others, because what is written with one is not sent back (`ReplicationOrigins`). Those " +
			"of a link are made with it."},
	{"pg_rewrite", Compared,
		"Views and rules: that they are there, and enabled how; what they say where both sides are of one " +
			"version. Rules that are always enabled are refused (`AlwaysTriggers`)."},
	{"pg_seclabel", Compared, "Security labels."},
	{"pg_sequence", Compared,
		"Type, start, step, limits and cache, with `pg_class`. The values are carried in the pause."},
	{"pg_shdepend", SameByConstruction, "Follows from owners, rights and policies, which are looked at."},
	{"pg_shdescription", ComparedInPause, "Comments on databases, roles and tablespaces."},
	{"pg_shseclabel", ComparedInPause, "Security labels of databases, roles and tablespaces."},
	{"pg_statistic", OfEachSide,
		"What ANALYZE finds. From PostgreSQL 18 on an upgrade takes it over; nothing but plans goes by it."},
	{"pg_statistic_ext", Compared, "Statistics objects, with what they are about."},
	{"pg_statistic_ext_data", OfEachSide,
		"What ANALYZE finds for statistics objects, as `pg_statistic`."},
	{"pg_subscription", Refused, "Subscriptions of others, because both sides would follow (`Subscriptions`)."},
	{"pg_subscription_rel", Refused,
		"Refused with `pg_subscription`. Of a link it is compared with the tables that there are " +
			"(`TablesDiffer`)."},
	{"pg_tablespace", ComparedInPause,
		"Tablespaces: owner, rights, and options but for those of PostgreSQL's own ones. Where one is goes by the " +
			"volume."},
	{"pg_transform", Compared, "Transforms."},
	{"pg_trigger", Compared,
		"Triggers, and how they are enabled. Those that are always enabled are refused (`AlwaysTriggers`)."},
	{"pg_ts_config", Compared, "Text search configurations, with their owners."},
	{"pg_ts_config_map", Compared, "With `pg_ts_config`: which dictionaries are asked for which words."},
	{"pg_ts_dict", Compared,
		"Text search dictionaries, with their options. The files that they read are in the image."},
	{"pg_ts_parser", Compared, "Text search parsers."},
	{"pg_ts_template", Compared, "Text search templates."},
	{"pg_type", Compared, "Types and domains: owner, rights, and what they are made of."},
	{"pg_user_mapping", Compared, "User mappings; a difference names the role, and no option."},
}
