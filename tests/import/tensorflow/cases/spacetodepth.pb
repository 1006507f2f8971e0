
;
x0Placeholder*
dtype0*
shape:
R
SpaceToDepthSpaceToDepthx0*
data_formatNHWC*

block_size*
T0
+
IdentityIdentitySpaceToDepth*
T0