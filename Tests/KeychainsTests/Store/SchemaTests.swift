import Basics
import GRDB
import KeychainFormats
import TestSupport
import Testing

@testable import Keychains

/// The statements of schema 12.11 as Apple's daemon executes them, written by hand from its attribute lists.
private enum AppleSchema {
  static let genericPasswords = """
    CREATE TABLE genp(rowid INTEGER PRIMARY KEY AUTOINCREMENT,cdat REAL,mdat REAL,desc BLOB,icmt BLOB,\
    crtr INTEGER,type INTEGER,scrp INTEGER,labl BLOB,alis BLOB,invi INTEGER,nega INTEGER,cusi INTEGER,\
    prot BLOB,acct BLOB NOT NULL DEFAULT '',svce BLOB NOT NULL DEFAULT '',gena BLOB,data BLOB,\
    agrp TEXT NOT NULL,pdmn TEXT,sync INTEGER NOT NULL DEFAULT 0,tomb INTEGER NOT NULL DEFAULT 0,sha1 BLOB,\
    vwht TEXT,tkid TEXT,musr BLOB NOT NULL,UUID TEXT,sysb INTEGER DEFAULT 0,pcss INTEGER,pcsk BLOB,\
    pcsi BLOB,persistref BLOB NOT NULL,clip INTEGER NOT NULL DEFAULT 0,ggrp TEXT,UNIQUE(acct,svce,agrp,sync,\
    vwht,tkid,musr,ggrp))
    """

  static let internetPasswords = """
    CREATE TABLE inet(rowid INTEGER PRIMARY KEY AUTOINCREMENT,cdat REAL,mdat REAL,desc BLOB,icmt BLOB,\
    crtr INTEGER,type INTEGER,scrp INTEGER,labl BLOB,alis BLOB,invi INTEGER,nega INTEGER,cusi INTEGER,\
    prot BLOB,acct BLOB NOT NULL DEFAULT '',sdmn BLOB NOT NULL DEFAULT '',srvr BLOB NOT NULL DEFAULT '',\
    ptcl INTEGER NOT NULL DEFAULT 0,atyp BLOB NOT NULL DEFAULT '',port INTEGER NOT NULL DEFAULT 0,\
    path BLOB NOT NULL DEFAULT '',data BLOB,agrp TEXT NOT NULL,pdmn TEXT,sync INTEGER NOT NULL DEFAULT 0,\
    tomb INTEGER NOT NULL DEFAULT 0,sha1 BLOB,vwht TEXT,tkid TEXT,musr BLOB NOT NULL,UUID TEXT,\
    sysb INTEGER DEFAULT 0,pcss INTEGER,pcsk BLOB,pcsi BLOB,persistref BLOB NOT NULL,\
    clip INTEGER NOT NULL DEFAULT 0,ggrp TEXT,UNIQUE(acct,sdmn,srvr,ptcl,atyp,port,path,agrp,sync,vwht,tkid,\
    musr,ggrp))
    """

  static let certificates = """
    CREATE TABLE cert(rowid INTEGER PRIMARY KEY AUTOINCREMENT,cdat REAL,mdat REAL,\
    ctyp INTEGER NOT NULL DEFAULT 0,cenc INTEGER,labl BLOB,alis BLOB,subj BLOB,\
    issr BLOB NOT NULL DEFAULT '',slnr BLOB NOT NULL DEFAULT '',skid BLOB,pkhh BLOB,data BLOB,\
    agrp TEXT NOT NULL,pdmn TEXT,sync INTEGER NOT NULL DEFAULT 0,tomb INTEGER NOT NULL DEFAULT 0,sha1 BLOB,\
    vwht TEXT,tkid TEXT,musr BLOB NOT NULL,UUID TEXT,sysb INTEGER DEFAULT 0,pcss INTEGER,pcsk BLOB,\
    pcsi BLOB,persistref BLOB NOT NULL,clip INTEGER NOT NULL DEFAULT 0,ggrp TEXT,UNIQUE(ctyp,issr,slnr,agrp,\
    sync,vwht,tkid,musr,ggrp))
    """

  static let keys = """
    CREATE TABLE keys(rowid INTEGER PRIMARY KEY AUTOINCREMENT,cdat REAL,mdat REAL,\
    kcls INTEGER NOT NULL DEFAULT 0,labl BLOB,alis BLOB,perm INTEGER,priv INTEGER,modi INTEGER,\
    klbl BLOB NOT NULL DEFAULT '',atag BLOB NOT NULL DEFAULT '',crtr INTEGER NOT NULL DEFAULT 0,\
    type INTEGER NOT NULL DEFAULT 0,bsiz INTEGER NOT NULL DEFAULT 0,esiz INTEGER NOT NULL DEFAULT 0,\
    sdat REAL NOT NULL DEFAULT 0,edat REAL NOT NULL DEFAULT 0,sens INTEGER,asen INTEGER,extr INTEGER,\
    next INTEGER,encr INTEGER,decr INTEGER,drve INTEGER,sign INTEGER,vrfy INTEGER,snrc INTEGER,vyrc INTEGER,\
    wrap INTEGER,unwp INTEGER,data BLOB,agrp TEXT NOT NULL,pdmn TEXT,sync INTEGER NOT NULL DEFAULT 0,\
    tomb INTEGER NOT NULL DEFAULT 0,sha1 BLOB,vwht TEXT,tkid TEXT,musr BLOB NOT NULL,UUID TEXT,\
    sysb INTEGER DEFAULT 0,pcss INTEGER,pcsk BLOB,pcsi BLOB,persistref BLOB NOT NULL,\
    clip INTEGER NOT NULL DEFAULT 0,ggrp TEXT,UNIQUE(kcls,klbl,atag,crtr,type,bsiz,esiz,sdat,edat,agrp,sync,\
    vwht,tkid,musr,ggrp))
    """

  static let version = """
    CREATE TABLE tversion(rowid INTEGER PRIMARY KEY AUTOINCREMENT,version INTEGER NOT NULL,\
    minor INTEGER NOT NULL DEFAULT 0,UNIQUE(version))
    """

  static let metadataKeys = """
    CREATE TABLE metadatakeys(keyclass TEXT NOT NULL,actualKeyclass TEXT,data BLOB,UNIQUE(keyclass))
    """

  /// Each table and the columns that have their own index. An index is named after its table and column.
  static let singleColumnIndexes: [(table: String, columns: String)] = [
    ("genp", "type acct svce sha1 vwht tkid UUID persistref ggrp"),
    ("inet", "type alis acct sdmn srvr ptcl atyp port path sha1 vwht tkid UUID persistref ggrp"),
    ("cert", "ctyp alis subj issr slnr skid pkhh sha1 vwht tkid UUID persistref ggrp"),
    (
      "keys",
      "kcls alis klbl atag crtr type bsiz esiz sdat edat encr decr drve sign vrfy wrap unwp "
        + "sha1 vwht tkid UUID persistref ggrp"
    ),
    ("tversion", "version"),
    ("metadatakeys", "keyclass"),
  ]

  static let compositeIndexes = [
    "CREATE INDEX agrp_musr_tomb_svce_acct ON genp(agrp,musr,tomb,svce,acct)",
    "CREATE INDEX genpagrp_musr_tomb_acct ON genp(agrp,musr,tomb,acct)",
    "CREATE INDEX agrp_musr_tomb_srvr_acct ON inet(agrp,musr,tomb,srvr,acct)",
    "CREATE INDEX agrp_musr_tomb_type ON inet(agrp,musr,tomb,type)",
    "CREATE INDEX inetagrp_musr_tomb_acct ON inet(agrp,musr,tomb,acct)",
    "CREATE INDEX agrp_musr_tomb_subj ON cert(agrp,musr,tomb,subj)",
    "CREATE INDEX agrp_musr_tomb_atag ON keys(agrp,musr,tomb,atag)",
  ]
}

@Suite("New keychain databases")
struct SchemaTests {
  /// Returns the statements that created the objects of a type in a new database.
  private func statements(_ type: String) throws -> [String] {
    let directory = try TemporaryDirectory()
    _ = try KeychainStore.create(at: directory.path("keychain-2.db"))
    return try DatabaseQueue(path: directory.path("keychain-2.db")).read { database in
      try String.fetchAll(
        database, sql: "SELECT sql FROM sqlite_master WHERE type=? AND sql IS NOT NULL AND name NOT LIKE 'sqlite_%'",
        arguments: [type])
    }
  }

  @Test("A new database has exactly Apple's tables")
  func tables() throws {
    let expected = [
      AppleSchema.genericPasswords, AppleSchema.internetPasswords, AppleSchema.certificates, AppleSchema.keys,
      AppleSchema.version, AppleSchema.metadataKeys,
    ]
    #expect(try statements("table") == expected)
  }

  @Test("A new database has Apple's indexes and no others")
  func indexes() throws {
    let single = AppleSchema.singleColumnIndexes.flatMap { table, columns in
      columns.split(separator: " ").map { "CREATE INDEX \(table)\($0) ON \(table)(\($0))" }
    }
    #expect(Set(try statements("index")) == Set(single + AppleSchema.compositeIndexes))
  }

  @Test("A new database states version 12.11 in one row")
  func version() throws {
    let directory = try TemporaryDirectory()
    _ = try KeychainStore.create(at: directory.path("keychain-2.db"))
    let rows = try DatabaseQueue(path: directory.path("keychain-2.db")).read { database in
      try Row.fetchAll(database, sql: "SELECT version, minor FROM tversion").map { [$0[0] as Int?, $0[1] as Int?] }
    }
    #expect(rows == [[12, 11]])
  }
}
