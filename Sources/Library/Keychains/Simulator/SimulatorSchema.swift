/// The schemas of a Simulator's keychain that can be changed, and the tables of a new database.
///
/// Source: Apple `SecItemSchema.c`, `SecItemDb.c`, Security-61901; schema 12.11, of iOS 18 and later.
package enum SimulatorSchema {
  /// The newest schema that can be changed, and the schema of a new database. Databases with a newer schema can only be
  /// read.
  package static let newest = KeychainDatabase.SchemaVersion(major: 12, minor: 11)

  /// Returns whether a database with the schema can be changed.
  static func isChangeable(_ schema: KeychainDatabase.SchemaVersion) -> Bool {
    schema.major == 11 || schema.major == newest.major && schema.minor <= newest.minor
  }

  /// The definitions of the tables that contain no items, version or keys, each as it follows `CREATE TABLE`. Without
  /// these tables, the daemon considers a database damaged and deletes it.
  static let otherTables = [
    """
    outgoingqueue(ckzone TEXT NOT NULL,UUID TEXT,parentKeyUUID TEXT NOT NULL,action TEXT NOT NULL,\
    state TEXT NOT NULL,waituntil TEXT,accessgroup TEXT NOT NULL,gencount INTEGER NOT NULL DEFAULT 0,\
    wrappedkey BLOB NOT NULL,encitem BLOB NOT NULL,encver INTEGER NOT NULL DEFAULT 0,ckrecord TEXT,\
    pcss INTEGER,pcsk BLOB,pcsi BLOB,contextID TEXT NOT NULL DEFAULT '',UNIQUE(ckzone,UUID,state,contextID))
    """,
    """
    incomingqueue(ckzone TEXT NOT NULL,UUID TEXT,parentKeyUUID TEXT NOT NULL,action TEXT NOT NULL,\
    state TEXT NOT NULL,gencount INTEGER NOT NULL DEFAULT 0,wrappedkey BLOB NOT NULL,encitem BLOB NOT NULL,\
    encver INTEGER NOT NULL DEFAULT 0,ckrecord TEXT,pcss INTEGER,pcsk BLOB,pcsi BLOB,\
    contextID TEXT NOT NULL DEFAULT '',UNIQUE(ckzone,UUID,state,contextID))
    """,
    """
    synckeys(ckzone TEXT NOT NULL,UUID TEXT,keyclass TEXT NOT NULL,currentkey INTEGER NOT NULL,\
    parentKeyUUID TEXT NOT NULL,state TEXT NOT NULL,wrappedkey BLOB NOT NULL,ckrecord BLOB NOT NULL,\
    contextID TEXT NOT NULL DEFAULT '',UNIQUE(ckzone,UUID,keyclass,state,contextID))
    """,
    """
    ckmirror(ckzone TEXT NOT NULL,UUID TEXT,parentKeyUUID TEXT NOT NULL,gencount INTEGER NOT NULL DEFAULT 0,\
    wrappedkey BLOB NOT NULL,encitem BLOB NOT NULL,ckrecord BLOB NOT NULL,encver INTEGER NOT NULL DEFAULT 0,\
    wascurrent INTEGER,suggestDeletion INTEGER,pcss INTEGER,pcsk BLOB,pcsi BLOB,\
    contextID TEXT NOT NULL DEFAULT '',UNIQUE(ckzone,UUID,contextID))
    """,
    """
    currentkeys(contextID TEXT NOT NULL DEFAULT '',ckzone TEXT NOT NULL,keyclass TEXT NOT NULL,\
    currentKeyUUID TEXT,ckrecord BLOB NOT NULL,UNIQUE(contextID,ckzone,keyclass))
    """,
    """
    ckstate(ckzone TEXT NOT NULL,ckzonecreated INTEGER NOT NULL DEFAULT 0,\
    ckzonesubscribed INTEGER NOT NULL DEFAULT 0,lastfetch TEXT,changetoken TEXT,ratelimiter BLOB,\
    lastfixup INTEGER NOT NULL DEFAULT 0,morecoming INTEGER,lastscan TEXT,extra BLOB,\
    contextID TEXT NOT NULL DEFAULT '',fetchNewestChangesFirst INTEGER,initialSyncFinished INTEGER,\
    UNIQUE(ckzone,contextID))
    """,
    """
    item_backup(rowid INTEGER PRIMARY KEY AUTOINCREMENT,primaryKey TEXT NOT NULL,musr BLOB NOT NULL,\
    sha1 BLOB,backupData BLOB NOT NULL,pkhh BLOB,UNIQUE(primaryKey,musr))
    """,
    """
    backup_keybag(rowid INTEGER PRIMARY KEY AUTOINCREMENT,publickeyHash BLOB NOT NULL,musr BLOB NOT NULL,\
    publickey BLOB NOT NULL,agrp TEXT NOT NULL,UNIQUE(publickeyHash,musr,agrp))
    """,
    """
    ckmanifest(ckzone TEXT NOT NULL,gencount INTEGER NOT NULL DEFAULT 0,digest BLOB NOT NULL,\
    signatures BLOB NOT NULL,signerID TEXT NOT NULL,leafIDs BLOB NOT NULL,peerManifests BLOB NOT NULL,\
    currentItems BLOB NOT NULL,futureData BLOB NOT NULL,schema BLOB NOT NULL,ckrecord BLOB,UNIQUE(ckzone))
    """,
    """
    pending_manifest(ckzone TEXT NOT NULL,gencount INTEGER NOT NULL DEFAULT 0,digest BLOB NOT NULL,\
    signatures BLOB NOT NULL,signerID TEXT NOT NULL,leafIDs BLOB NOT NULL,peerManifests BLOB NOT NULL,\
    currentItems BLOB NOT NULL,futureData BLOB NOT NULL,schema BLOB NOT NULL,ckrecord BLOB,UNIQUE(ckzone))
    """,
    """
    ckmanifest_leaf(ckzone TEXT NOT NULL,UUID TEXT,digest BLOB NOT NULL,entryDigests BLOB NOT NULL,\
    ckrecord BLOB,UNIQUE(ckzone,UUID))
    """,
    """
    backup_keyarchive(key_archive_hash TEXT NOT NULL,musr BLOB NOT NULL,key_archive TEXT NOT NULL,\
    ckzone TEXT NOT NULL,ckrecord TEXT,archive_escrowid TEXT,UNIQUE(key_archive_hash,musr,key_archive,\
    ckzone))
    """,
    """
    currentkeyarchives(key_archive_hash TEXT NOT NULL,keyarchive_name TEXT NOT NULL,\
    UNIQUE(key_archive_hash))
    """,
    """
    archived_key_backup(pdmn TEXT,UUID TEXT,musr BLOB NOT NULL,agrp TEXT NOT NULL,\
    key_archive_hash TEXT NOT NULL,archived_key TEXT NOT NULL,ckzone TEXT NOT NULL,ckrecord TEXT,\
    archive_escrowid TEXT,UNIQUE(UUID,musr,agrp,key_archive_hash,ckzone))
    """,
    """
    pending_manifest_leaf(ckzone TEXT NOT NULL,UUID TEXT,digest BLOB NOT NULL,entryDigests BLOB NOT NULL,\
    ckrecord BLOB,UNIQUE(ckzone,UUID))
    """,
    """
    currentitems(ckzone TEXT NOT NULL,identifier TEXT,currentItemUUID TEXT,state TEXT NOT NULL,\
    ckrecord BLOB NOT NULL,contextID TEXT NOT NULL DEFAULT '',UNIQUE(ckzone,identifier,state,contextID))
    """,
    """
    ckdevicestate(ckzone TEXT NOT NULL,device TEXT,osversion TEXT,lastunlock TEXT,peerid TEXT,\
    circlestatus TEXT,octagonpeerid TEXT,octagonstatus TEXT,keystate TEXT,currentTLK TEXT,\
    currentClassA TEXT,currentClassC TEXT,ckrecord BLOB,contextID TEXT NOT NULL DEFAULT '',UNIQUE(ckzone,\
    device,contextID))
    """,
    """
    tlkshare(ckzone TEXT NOT NULL,UUID TEXT,senderpeerid TEXT,recvpeerid TEXT,recvpubenckey BLOB,\
    curve INTEGER,poisoned INTEGER NOT NULL DEFAULT 0,epoch INTEGER NOT NULL DEFAULT 0,\
    wrappedkey BLOB NOT NULL,signature BLOB,ckrecord BLOB,version INTEGER NOT NULL DEFAULT 0,\
    contextID TEXT NOT NULL DEFAULT '',UNIQUE(ckzone,UUID,senderpeerid,recvpeerid,contextID))
    """,
    """
    sharingIncomingQueue(rowid INTEGER PRIMARY KEY AUTOINCREMENT,UUID TEXT,zone TEXT NOT NULL DEFAULT '',\
    ownr TEXT NOT NULL DEFAULT '',deln INTEGER NOT NULL DEFAULT 0,type INTEGER NOT NULL DEFAULT 0,\
    flag INTEGER NOT NULL DEFAULT 0,data BLOB,pdmn TEXT,agrp TEXT NOT NULL,sha1 BLOB,\
    persistref BLOB NOT NULL,sync INTEGER NOT NULL DEFAULT 0,tomb INTEGER NOT NULL DEFAULT 0,mdat REAL,\
    UNIQUE(UUID,zone,ownr,agrp,sync))
    """,
    """
    sharingMirror(rowid INTEGER PRIMARY KEY AUTOINCREMENT,UUID TEXT,zone TEXT NOT NULL DEFAULT '',\
    ownr TEXT NOT NULL DEFAULT '',type INTEGER NOT NULL DEFAULT 0,flag INTEGER NOT NULL DEFAULT 0,\
    lwsv INTEGER NOT NULL,data BLOB,pdmn TEXT,agrp TEXT NOT NULL,pkkp BLOB,pkvp BLOB,ipkp BLOB,ipvp BLOB,\
    sckp BLOB,scvp BLOB,sha1 BLOB,persistref BLOB NOT NULL,sync INTEGER NOT NULL DEFAULT 0,\
    tomb INTEGER NOT NULL DEFAULT 0,mdat REAL,UNIQUE(UUID,zone,ownr,agrp,sync))
    """,
    """
    sharingOutgoingQueue(rowid INTEGER PRIMARY KEY AUTOINCREMENT,UUID TEXT,zone TEXT NOT NULL DEFAULT '',\
    ownr TEXT NOT NULL DEFAULT '',deln INTEGER NOT NULL DEFAULT 0,type INTEGER NOT NULL DEFAULT 0,\
    flag INTEGER NOT NULL DEFAULT 0,data BLOB,mdat REAL,pdmn TEXT,agrp TEXT NOT NULL,pkkp BLOB,pkvp BLOB,\
    ipkp BLOB,ipvp BLOB,sckp BLOB,scvp BLOB,sha1 BLOB,persistref BLOB NOT NULL,\
    sync INTEGER NOT NULL DEFAULT 0,tomb INTEGER NOT NULL DEFAULT 0,UNIQUE(UUID,zone,ownr,agrp,sync))
    """,
  ]
}
