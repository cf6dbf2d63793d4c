"""The small faults that `check_mutations.py` makes in the sources, so that tests have to notice them.

The context of a change is an excerpt that occurs once in its file. The change replaces the expression between « and ».
The kinds of changes are those that tests missed before.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutation:
    """A change of the sources."""

    number: int
    kind: str
    file: str
    # The excerpt of the file, with « and » around the text to replace.
    context: str
    # The text that replaces it.
    mutant: str
    # The behavior with the change, for the table.
    summary: str
    # The tests that are run first: a regular expression for `swift test --filter`.
    suites: str
    # Whether the excerpt between « and » is a statement. If not, it is an expression.
    is_statement: bool

    @property
    def parts(self):
        """The excerpt in three parts: the text before «, the text between « and », and the text after »."""
        before, remainder = self.context.split("«")
        return before, *remainder.split("»")


MUTATIONS = []


def add(kind, file, context, mutant, summary, suites, is_statement=False):
    """Add a change to the list. It gets the next number."""
    MUTATIONS.append(
        Mutation(len(MUTATIONS) + 1, kind, f"Sources/{file}", context, mutant, summary, suites, is_statement)
    )


# The kinds of changes, as the table names them:
# - EDGE: The last value of a range is treated like the values outside it, or the other way round.
# - VARIANT: The second of two supported variants is not supported.
# - FIELD: A field is not read, not compared or not counted.
# - DEFAULT: A value that most callers leave at its default has no effect.
# - LIMIT: The largest allowed number is refused, or a limit is too generous.
# - FORMAT: A document or message of the program has a wrong or missing part.
# - SECRET: A secret or name is shown that should be left out.
# - SYNC: Data is not synced to the disk.
# - INVERTED: A condition always holds.
# - SWAPPED: A value is reported under the name of another value.
# - EXIT: An exit code is wrong.
EDGE, VARIANT, FIELD, DEFAULT, LIMIT = "edge of a range", "second variant", "field", "default", "limit"
FORMAT, SECRET, SYNC, INVERTED, SWAPPED, EXIT = "report format", "secret", "sync", "condition", "swapped", "exit code"

# KeychainFormats
add(
    EDGE,
    "Library/KeychainFormats/PropertyLists/BinaryPlistReader.swift",
    "guard «size < 8» else { throw malformed(\"a reference of",
    "size < 4",
    "binary plists: UIDs of 5 to 8 bytes are refused",
    "BinaryPlistTests",
)
add(
    EDGE,
    "Library/KeychainFormats/PropertyLists/DERDate.swift",
    "«second <= 61»",
    "second < 61",
    "dates: a time whose seconds are 61 is refused",
    "DERRuleTests",
)
add(
    EDGE,
    "Library/KeychainFormats/PropertyLists/DERDate.swift",
    "year + («year < 50» ?",
    "year <= 50",
    "dates: a UTCTime of year 50 is in 2050, not 1950",
    "DERRuleTests",
)
add(
    LIMIT,
    "Library/KeychainFormats/Keybags/Keybag.swift",
    "guard «keyStarts.count <= Self.maximumClassKeyCount» else",
    "keyStarts.count < Self.maximumClassKeyCount",
    "keybags: 64 class keys are refused",
    "KeybagFaultTests",
)
add(
    VARIANT,
    "Library/KeychainFormats/Keybags/Keybag.swift",
    "for tag in «[Tag.salt, .iterations, .dpic, .dpsl]» where",
    "[Tag.salt, .iterations, .dpic]",
    "keybags: two different DPSL entries are not reported",
    "KeybagFaultTests",
)

# KeychainCrypto
add(
    EDGE,
    "Library/KeychainCrypto/Certificates/CertificateAttributes.swift",
    "&& «date <= period.end»",
    "date < period.end",
    "certificates: a certificate is invalid in the last second of its validity",
    "CertificateTests",
)
add(
    VARIANT,
    "Library/KeychainCrypto/Certificates/CertificateAttributes.swift",
    "where «[\"CERTIFICATE\", \"X509 CERTIFICATE\"]».contains(",
    "[\"CERTIFICATE\"]",
    "PEM: a certificate with the label X509 CERTIFICATE is not read",
    "CertificateTests",
)
add(
    VARIANT,
    "Library/KeychainCrypto/Certificates/Trust/ChainSearch.swift",
    "let name = «host.hasSuffix(\".\")» ?",
    "false",
    "trust: a host name with a final dot matches no certificate",
    "TrustTests",
)
add(
    EDGE,
    "Library/KeychainCrypto/Derivation/PBKDF2.swift",
    "guard «key.count > Self.blockSize» else",
    "key.count >= Self.blockSize",
    "PBKDF2: a password as long as a block is replaced with its digest",
    "KeyDerivationTests",
)
add(
    EDGE,
    "Library/KeychainCrypto/Ciphers/FileCipher.swift",
    "«(1...FileCipher.blockSize).contains(paddingCount)»",
    "(1..<FileCipher.blockSize).contains(paddingCount)",
    "files: padding of a whole block is refused",
    "FileCipherTests",
)
add(
    LIMIT,
    "Library/KeychainCrypto/Keybags/BackupKeybag.swift",
    "guard «(1...maximumRounds).contains(rounds)», let count",
    "(1..<maximumRounds).contains(rounds)",
    "keybags: the largest iteration count is refused",
    "KeybagCreationTests",
)

# KeychainRules
add(
    EDGE,
    "Library/KeychainRules/Columns/NumericAffinity.swift",
    "guard let integer = Int64(exactly: real), «integer > Int64.min», integer",
    "integer >= Int64.min",
    "columns: the real number -2^63 is converted to an integer",
    "PrimaryKeyTests",
)
add(
    EDGE,
    "Library/KeychainRules/Importing/ImportConflict.swift",
    "if let incomingDate, «incomingDate > existingDate» { return",
    "incomingDate >= existingDate",
    "import: an item that replaces one with the same date does not get a later date",
    "^KeychainRulesTests",
)
add(
    VARIANT,
    "Library/KeychainRules/Importing/RestoreRemoval.swift",
    "«columns[.sharingGroup] == .text([])»",
    "true",
    "restore: items of a shared group are removed from the device too",
    "^KeychainRulesTests",
)
add(
    INVERTED,
    "Library/KeychainRules/Columns/AttributeConversion.swift",
    "guard let number = Int32(text), «String(number) == text» else",
    "true",
    "columns: the text 007 is converted to the number 7",
    "^KeychainRulesTests",
)
add(
    DEFAULT,
    "Library/KeychainRules/Exclusions/ExportExclusions.swift",
    "$0.item.isTombstone && «!$0.deviceSyncs»",
    "true",
    "backup: the tombstones of a device that syncs are left out of its backup",
    "^KeychainRulesTests",
)

# Keychains
add(
    VARIANT,
    "Library/Keychains/Dumps/Formats/KeychainDumperReader.swift",
    "|| «bytes.elementsEqual(\"<Not Accessible>\".utf8)»",
    "false",
    "keychain_dumper: the text <Not Accessible> is read as a secret",
    "ToolDumpTests",
)
add(
    LIMIT,
    "Library/Keychains/Databases/KeychainDatabase.swift",
    "guard «count <= maximumKeyRowCount» else",
    "count < maximumKeyRowCount",
    "databases: 1000 metadata keys are refused",
    "KeychainDatabaseTests",
)
add(
    FIELD,
    "Library/Keychains/Databases/KeychainDatabase.swift",
    "as: «log.hasUncommittedFrames» ?",
    "false",
    "databases: a log that ends with an uncommitted frame is reported as completely applied",
    "KeychainDatabaseTests",
)
add(
    VARIANT,
    "Library/Keychains/Simulator/SimulatorSchema.swift",
    "«schema.major == 11» ||",
    "false",
    "Simulators: a database with schema 11 cannot be changed",
    "SimulatorKeychainTests",
)
add(
    VARIANT,
    "Library/Keychains/Simulator/SimulatorKeychain+Items.swift",
    "«columns[item.kind]?.contains(\"clip\") == true»",
    "false",
    "Simulators: the App Clip flag is lost",
    "SimulatorKeychainTests",
)

# VirtualDevice
add(
    EDGE,
    "Library/VirtualDevice/SecItem/Query/ParsedQuery+MatchKeys.swift",
    "guard let count = Int(exactly: count), «count >= 0» else",
    "count > 0",
    "queries: a limit of 0 is refused",
    "SecItemCall",
)
add(
    VARIANT,
    "Library/VirtualDevice/SecItem/Service/MatchFilter.swift",
    "«$0.lowercased() == address.lowercased()»",
    "$0 == address",
    "queries: a search finds an email address only if upper and lower case match",
    "PKCS12Tests",
)
add(
    INVERTED,
    "Library/VirtualDevice/SecItem/Query/ParsedQuery.swift",
    "guard «call == .copyMatching» else",
    "true",
    "queries: an update or deletion that skips items with authentication is accepted",
    "SecItemCall",
)
add(
    VARIANT,
    "Library/VirtualDevice/SecItem/Values/AccessControl.swift",
    "flags.isSubset(of: «[.userPresence, .applicationPassword, .privateKeyUsage]»)",
    "[.userPresence, .privateKeyUsage]",
    "access controls: user presence excludes an application password",
    "KeychainServicesTests.*AccessControlTests",
)
add(
    SYNC,
    "Library/VirtualDevice/Files/DeviceChange.swift",
    "      // The names of the new files must be durable before the list that refers to them.\n"
    "      «try files.syncDirectory(directory)»\n",
    "",
    "devices: the staged files' names are not synced before the list",
    "CommitStageTests",
    is_statement=True,
)

# Backups
add(
    INVERTED,
    "Library/Backups/Container/ZipDirectory.swift",
    "«offset == all32Bits || offset == large.offset»",
    "true",
    "zip: an archive whose two end records state different offsets is accepted",
    "MaliciousContainerTests",
)
add(
    EDGE,
    "Library/Backups/Verification/BackupVerifier+Files.swift",
    "{ «$0 == 0» || !$0.isMultiple(of: 16) }",
    "false",
    "verify --quick: an encrypted file of 0 bytes is accepted",
    "VerificationTests",
)
add(
    INVERTED,
    "Library/Backups/Verification/BackupVerification.swift",
    "case .foreign: «verifiedAllFiles»",
    "true",
    "verify: another device's backup is reported as whole although some files were not checked",
    "VerificationTests",
)
add(
    SYNC,
    "Library/Backups/Writing/BackupInstaller.swift",
    "    do throws(Errno) {\n      «try system.syncDirectory(parent)»\n      return true",
    "",
    "backup: the name of a new folder is not synced",
    "FaultInjectionTests",
    is_statement=True,
)
add(
    EDGE,
    "Library/Backups/Extraction/Names/SafeName.swift",
    "«shortened.utf8.count + character.utf8.count + count + 1 <= maximumByteCount»",
    "shortened.utf8.count + character.utf8.count + count <= maximumByteCount",
    "export --files: a shortened name can have 256 bytes, one more than allowed",
    "^BackupsTests.*Extraction",
)

# KeyhaulKit
add(
    FIELD,
    "Library/KeyhaulKit/Forecasts/RestoreOutlook.swift",
    "counts.unreadable += «sourceDeviceItems.unreadable.count»",
    "0",
    "outlook: items that the source device cannot read are not counted",
    "OutlookCountTests",
)
add(
    EDGE,
    "Library/KeyhaulKit/Planning/TargetModel.swift",
    "return «targetDate > backupDate» ? .newer",
    "targetDate >= backupDate",
    "plan: an overwritten item with the same date is counted as newer",
    "PlannerTests",
)
add(
    SECRET,
    "Library/KeyhaulKit/Forecasts/RestoreOutlook.swift",
    "sourceDeviceItems: «sourceDeviceItems?.redacted»)",
    "sourceDeviceItems",
    "plan --redact: the outlook shows the names of items that are in no backup",
    "OutlookCountTests",
)
add(
    FIELD,
    "Library/KeyhaulKit/Document/PlanDocument.swift",
    "if «target.sameDevice != current.target.sameDevice» { return",
    "false",
    "restore --plan: a plan for another device is accepted",
    "PlanDocumentTests",
)
add(
    VARIANT,
    "Library/KeyhaulKit/Expectations/PlanExpectation.swift",
    "if let onSameDevice, «onSameDevice != scenario.onSameDevice» { return",
    "onSameDevice == false && scenario.onSameDevice == true",
    "plan --expect: an expectation for the source device is also applied to other devices",
    "^KeyhaulKitTests.*Expectation",
)

# Reports
add(
    SECRET,
    "Library/Reports/Documents/Items/FoundItemsCSV.swift",
    "guard let item = entry.item, «!(omitsProtectedSecrets && item.requiresAuthentication)», let secret",
    "true",
    "item find --format csv --reveal: protected secrets are printed",
    "FoundItemsCSVTests|ProtectedSecretTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Items/FoundItemsCSV.swift",
    "case .integer(let number): «String(number)»",
    "\"\"",
    "item find --format csv: the column of the port is empty",
    "FoundItemsCSVTests",
)
add(
    SWAPPED,
    "Library/Reports/Documents/Backups/DifferenceDocument.swift",
    "\"in_first\": .each(«difference.possiblyInSecond»)",
    "difference.possiblyInFirst",
    "diff --json: in_first lists the doubtful items of the second keychain",
    "DocumentMemberTests",
)
add(
    SWAPPED,
    "Library/Reports/Documents/Backups/VerificationDocument.swift",
    "\"other_size\": .count(«files.sizeMismatches»)",
    "files.unread",
    "verify --json: other_size states the number of unread files",
    "DocumentMemberTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Backups/InspectionDocument.swift",
    "\"links\": .count(«listing.linkCount»)",
    "listing.directoryCount",
    "inspect --json: links states the number of folders",
    "VerifyAndDiffTests",
)
add(
    SWAPPED,
    "Library/Reports/Documents/Moving/RestoreDocument.swift",
    "(\"overwritten_newer\", .count(«overwrittenNewerCount»))",
    "overwrittenCount",
    "restore --json: overwritten_newer counts all overwritten items",
    "MoveReportTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Backups/BackupDocument.swift",
    "\"deleted\": .array(«report.tombstones».map",
    "[]",
    "backup --json: the list of deleted items is empty",
    "DocumentMemberTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Backups/DumpInspection.swift",
    "(\"table_stated\", .boolean(«item.tableSource == .stated»))",
    "item.tableSource != .stated",
    "inspect --json of a dump: table_stated has the opposite value",
    "DatabaseCommandTests",
)
add(
    EDGE,
    "Library/Reports/OneTimePasswords/OTPAuthURIReader.swift",
    "guard let count = UInt8(value), «(1...10).contains(count)» else",
    "(1...9).contains(count)",
    "export --format otpauth: accounts with codes of ten digits are left out",
    "OneTimePasswordTests",
)
add(
    FORMAT,
    "Library/Reports/ItemExports/CertificatesAndKeys.swift",
    "if item.kind == .key, «item.role == .privateKey» {",
    "true",
    "export --format pem: public keys are counted as secrets",
    "CertificatesAndKeysTests",
)

# The program
add(
    EXIT,
    "CommandLine/keyhaul/Session/Errors/CommandExitStatus.swift",
    "case .stalePlan: («16»,",
    "14",
    "exit codes: stale-plan has the exit code 14 instead of 16",
    "BackupResultTests|CommandExitStatusTests",
)
add(
    EXIT,
    "CommandLine/keyhaul/Commands/Backups/Export/Export.swift",
    "return items.damagedCount > 0 || «source.authenticators.hasUnreadableFile» ?",
    "false",
    "export: the exit code is 0 although an authenticator's file cannot be read",
    "ExportReadingTests",
)
add(
    SECRET,
    "CommandLine/keyhaul/Commands/Backups/Export/ExportSource.swift",
    "var omitsProtectedSecrets: Bool { «kind != .dump» }",
    "kind == .archive",
    "export of a device: protected secrets are written",
    "ProtectedSecretTests",
)
add(
    SECRET,
    "CommandLine/keyhaul/Commands/Items/SearchableItems.swift",
    "sourceKind = \"archive\"\n    omitsProtectedSecrets = «true»",
    "false",
    "item find of a backup: protected secrets are printed",
    "ProtectedSecretTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/Commands/Items/ItemFind.swift",
    "if reveal, «omitsProtectedSecrets» { warnAboutProtected",
    "false",
    "item find --format csv --reveal: no warning says that protected secrets are left out",
    "ProtectedSecretTests",
)
add(
    EXIT,
    "CommandLine/keyhaul/Commands/Items/ItemFind.swift",
    "return «result.mayBeIncomplete && status == .ok ? .partial : status»",
    "status",
    "item find: the exit code is 0 although damaged items may match",
    "BackupItemTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/BackupBatch/Formatters/ResultFormatter.swift",
    "«isOnTerminal ? UntrustedText.escaped(CSV.fields(fields)) + \"\\n\" : CSV.line(fields)»",
    "CSV.line(fields)",
    "verify --format csv of many backups: control characters reach the terminal",
    "BatchCommandTests",
)
add(
    LIMIT,
    "CommandLine/keyhaul/BackupBatch/Running/BatchOptions.swift",
    "guard let value = Int(argument), «(1...Self.maximum).contains(value)» else",
    "(1..<Self.maximum).contains(value)",
    "verify: --jobs 256 is refused, although 256 is the maximum",
    "BatchCommandTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/Commands/Moving/Restore.swift",
    ".count(«changes[.keepsExisting, default: 0] + changes[.identical, default: 0]»)",
    "changes[.keepsExisting, default: 0]",
    "restore --json to a Simulator: identical items are not counted as kept",
    "SimulatorCommandTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/Commands/Items/ItemDelete.swift",
    "outcome(«dryRun.isOn ? 0 : entries.count»)",
    "entries.count",
    "item delete -n --json: a dry run counts its items as deleted",
    "ItemChangeTests",
)
add(
    EXIT,
    "CommandLine/keyhaul/Commands/Moving/PlanCommand.swift",
    "summary.migrates < summary.total || «report.source.sourceDeviceItems?.absent.isEmpty == false»",
    "false",
    "plan --exit-code: the exit code is 0 although items of the source device are in no backup",
    "SourceDeviceTests",
)

# Apple's modules and the server
add(
    EDGE,
    "Apple/KeychainServices/References/SecKey.swift",
    "«(bits % 8 == 0 ? 0 : 1)»",
    "0",
    "SecKeyGetBlockSize: the size of a P-521 key is 65 bytes instead of 66",
    "KeychainServicesTests.*CertificatesAndKeysTests",
)
add(
    SWAPPED,
    "Apple/KeyhaulTesting/Moves/Move.swift",
    "(«unreadable.count», \"damaged\")",
    "neverInBackup.count",
    "failure texts: the number of items in no backup is stated as the number of damaged items",
    "KeyhaulTestingTests.*(Story|Move)",
)
add(
    LIMIT,
    "Library/DeviceServer/Backup2/BackupUpload.swift",
    "guard try link.freeByteCount() > «byteCount + Self.reservedByteCount» else",
    "byteCount",
    "served devices: a backup may use the free space that the device reserves",
    "^DeviceServerTests",
)
