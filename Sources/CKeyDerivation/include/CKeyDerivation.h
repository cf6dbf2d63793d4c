void keyhaul_placeholder(void);
